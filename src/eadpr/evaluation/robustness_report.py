"""Stage `robustness_report`: how much each arm loses as near-duplicates join the corpus, as a table, a CSV and an SVG.

Interval estimates are paired over questions; an arm with several trainings has their means.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import plot_data, plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.comparisons import Outcomes, PerQuestion, Row, difference_table
from eadpr.evaluation.config import ReportArms, Robustness

Measured = dict[str, dict[int, Outcomes]]  # arm -> near-duplicates per question -> outcomes of its trainings


def run(
    robustness: Path, near_duplicates: Path, out: Path, *, settings: ReportArms, counts: Robustness, sets: Sets
) -> str:
    """Write the folder `out` whole and return the Markdown. `robustness` holds a folder per training."""
    measured = {
        arm: {n: Outcomes([robustness / name / f"{n}.parquet" for name in trainings]) for n in counts.counts}
        for arm, trainings in settings.trainings.items()
    }
    made = json.loads((near_duplicates / "report.json").read_text(encoding="utf-8"))
    parts = [f"# Near-duplicates by {made['generator']}", _made(made)]
    for name in sets.evaluate:
        parts += [f"## {name}", _table(measured, name, settings), *_changes(measured, name, settings)]
    markdown = "\n\n".join(parts) + "\n"
    with files.new_folder(out) as folder:
        files.write_text(folder / "table.md", markdown)
        _write_curves(folder, measured, settings, sets)
    return markdown


def remove_inactive(robustness: Path, settings: ReportArms) -> list[Path]:
    """Delete what arms that are no longer measured left behind; return it. DVC hashes the folder whole."""
    kept = {name for trainings in settings.trainings.values() for name in trainings}
    left = [path for path in sorted(robustness.glob("[!.]*")) if path.name not in kept]
    for path in left:
        shutil.rmtree(path)
    return left


def _made(made: dict[str, Any]) -> str:
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in made["dropped"].items()) or "none"
    return (
        f"{made['near_duplicates']:,} near-duplicates of {made['questions']:,} questions; {made['with_all']:,} have all"
        f" that were asked for, {made['with_none']:,} have none. Dropped: {dropped}. Every question counts."
    )


def _metrics(measured: Measured, name: str, asked: list[str]) -> list[str]:
    """Those of `asked` that the question set has; BM25 and answer awareness are not measured here."""
    first = next(iter(measured.values()))[0]
    return [metric for metric in asked if len(first.per_question(name, metric).question_ids)]


def _mean(found: PerQuestion) -> float:
    return float(found.sums.sum() / found.counts.sum())


def _table(measured: Measured, name: str, settings: ReportArms) -> str:
    metrics = _metrics(measured, name, settings.columns)
    rows = [
        [f"{arm}, {n}", *(f"{100 * _mean(of.per_question(name, metric)):.1f}" for metric in metrics)]
        for arm, of_arm in measured.items()
        for n, of in of_arm.items()
    ]
    return md.table(["%, near-duplicates per question", *map(md.title, metrics)], rows)


def _changes(measured: Measured, name: str, settings: ReportArms) -> list[str]:
    """What the most near-duplicates change for each arm, and whether they change it less for one than for another."""
    metrics = _metrics(measured, name, settings.differences)
    pairs = [(arm, other) for arm, other in settings.comparisons if other in measured]
    most = max(next(iter(measured.values())))
    none = {arm: [of_arm[0].per_question(name, metric) for metric in metrics] for arm, of_arm in measured.items()}
    all_ = {arm: [of_arm[most].per_question(name, metric) for metric in metrics] for arm, of_arm in measured.items()}
    change = {arm: [_less(a, b) for a, b in zip(all_[arm], none[arm], strict=True)] for arm in measured}
    rows = [Row(f"{arm}: {most} − 0", all_[arm], none[arm]) for arm in measured]
    for arm, other in pairs:
        rows.append(Row(f"{arm} − {other} at {most}", all_[arm], all_[other]))
        rows.append(Row(f"change of {arm} − change of {other}", change[arm], change[other]))
    return difference_table(rows, [md.title(metric) for metric in metrics], settings)


def _less(first: PerQuestion, second: PerQuestion) -> PerQuestion:
    """Both are of one arm, so their questions are the same."""
    return first._replace(sums=first.sums - second.sums)


def _write_curves(folder: Path, measured: Measured, settings: ReportArms, sets: Sets) -> None:
    rows, curves = [], {}
    for name in sets.evaluate:
        for metric in _metrics(measured, name, settings.differences):
            shares = {
                arm: {n: _mean(of.per_question(name, metric)) for n, of in of_arm.items()}
                for arm, of_arm in measured.items()
            }
            rows += [(n, share, arm, metric, name) for arm, curve in shares.items() for n, share in curve.items()]
            panel = f"{name}: {md.title(metric)}"
            curves[panel] = {arm: (list(curve), list(curve.values())) for arm, curve in shares.items()}
    header = ["near_duplicates", "share", "arm", "metric", "question_set"]
    plot_data.write_csv(folder / "robustness.csv", header, rows)
    if curves:
        files.write_text(folder / "robustness.svg", plots.robustness(curves, list(measured)))
