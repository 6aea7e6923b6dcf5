"""The stage `reading_report`: what one reader answers from the rankings of several retrievers, whose answer awareness
stands beside it (PiCL, Figure 2), as a table, a CSV and an SVG.

Interval estimates are paired over questions; an arm with several trainings has their means.
"""

from __future__ import annotations

import json
from pathlib import Path

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import plot_data, plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.comparisons import Outcomes, PerQuestion, difference_table, rows_of_pairs
from eadpr.evaluation.config import ReportArms
from eadpr.reading.config import GOLD, Read

Measured = dict[str, Outcomes]  # row -> outcomes of its trainings


def run(outcomes: Path, metrics: Path, out: Path, *, settings: ReportArms, read: Read, sets: Sets) -> str:
    """Write the folder `out` whole and return the Markdown. `outcomes` is the folder of a reader, which names it,
    `metrics` that of the rankings' own metrics."""
    measured = {
        row: Outcomes([outcomes / f"{name}.parquet" for name in trainings])
        for row, trainings in settings.trainings.items()
    }
    parts = [f"# Answers of the reader {outcomes.name}"]
    if read.questions is not None:
        parts += [f"At most {read.questions:,} questions of each set are read, the same from every ranking."]
    pairs = [pair for pair in settings.comparisons if measured.keys() >= {*pair}]
    for name in sets.evaluate:
        aa = {row: _awareness(metrics, trainings, name) for row, trainings in settings.trainings.items()}
        count = len(next(iter(measured.values())).per_question(name, read.metrics[0]).question_ids)
        parts += [f"## {name}: {count:,} questions", _table(measured, name, read, aa)]
        rows = rows_of_pairs(measured, pairs, name, read.metrics)
        parts += difference_table(rows, [title(metric) for metric in read.metrics], settings)
    markdown = "\n\n".join(parts) + "\n"
    with files.new_folder(out) as folder:
        files.write_text(folder / "table.md", markdown)
        _write_curves(folder, measured, read, sets)
    return markdown


def remove_inactive(folder: Path, settings: ReportArms, suffix: str = ".parquet") -> list[Path]:
    """Delete what rankings that are no longer read left behind; return it. DVC hashes the folder whole."""
    kept = {name for trainings in settings.trainings.values() for name in trainings}
    left = [path for path in sorted(folder.glob(f"[!.]*{suffix}")) if path.stem not in kept]
    for path in left:
        path.unlink()
    return left


def title(metric: str) -> str:
    """`em_5` -> EM, top-5."""
    kind, k = metric.split("_")
    return f"{kind.upper()}, top-{k}"


def _awareness(metrics: Path, trainings: list[str], question_set: str) -> dict[str, float]:
    """`aa`, the mean over the trainings, and `n_aa`, its pairs, of the whole set also where fewer questions are
    read; empty for a ranking without scores of pairs, as BM25's, and for `gold`."""
    if trainings == [GOLD]:
        return {}
    found = [json.loads((metrics / f"{name}.json").read_text(encoding="utf-8"))[question_set] for name in trainings]
    values = [of_training["aa"] for of_training in found if "aa" in of_training]
    return {"aa": sum(values) / len(values), "n_aa": found[0]["n_aa"]} if values else {}


def _share(found: PerQuestion) -> float:
    return float(found.sums.sum() / found.counts.sum())


def _table(measured: Measured, name: str, read: Read, aa: dict[str, dict[str, float]]) -> str:
    rows = []
    for row, of_row in measured.items():
        found = [of_row.per_question(name, metric) for metric in read.metrics]
        shares = [f"{100 * _share(of_metric):.1f}" for of_metric in found]
        rows.append([row, *shares, md.share(aa[row], "aa")])
    return md.table(["%", *map(title, read.metrics), "AA"], rows)


def _write_curves(folder: Path, measured: Measured, read: Read, sets: Sets) -> None:
    """Exact match over the passages that are read."""
    rows, curves = [], {}
    for name in sets.evaluate:
        shares = {row: [_share(of.per_question(name, f"em_{k}")) for k in read.top_k] for row, of in measured.items()}
        rows += [(*point, row, name) for row, of in shares.items() for point in zip(read.top_k, of, strict=True)]
        curves[name] = {row: (read.top_k, of) for row, of in shares.items()}
    plot_data.write_csv(folder / "em.csv", ["passages", "em", "arm", "question_set"], rows)
    files.write_text(folder / "em.svg", plots.exact_match(curves, list(measured)))
