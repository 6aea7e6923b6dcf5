"""The report's sections of readers: what each answers from the rankings of several retrievers.

Interval estimates are paired over questions; an arm with several trainings has their means.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import plot_data, plots
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.comparisons import difference_table, rows_of_pairs
from eadpr.evaluation.config import ReportArms
from eadpr.evaluation.outcomes import Outcomes
from eadpr.evaluation.summary import averaged, summary
from eadpr.reading.config import Read

Tables = dict[str, Outcomes]  # row -> outcomes of its trainings
OF_PATHS = {
    "em": "answer EM",
    "f1": "answer F1",
    "sp_em": "support EM",
    "sp_f1": "support F1",
    "joint_em": "joint EM",
    "joint_f1": "joint F1",
}
KINDS = {"bridge": "Bridge questions", "comparison": "Comparisons"}


def sections(
    outcomes: Path, folder: Path, rankings: Mapping[str, Any], settings: ReportArms, read: Read, sets: Sets
) -> list[str]:
    """Of every reader; what each answers from, and how often it is right, goes to `folder` as CSV, SVG and JSON.

    `rankings` are the summaries of rankings by name, whose answer awareness stands beside the answers (PiCL, Figure 2).
    """
    parts: list[str] = []
    for reader in sorted(settings.reading.each, key=lambda one: one in settings.of_paths):
        of_reader = outcomes / "reading" / reader
        if reader in settings.of_paths:
            parts += _of_paths(of_reader, folder, settings, sets)
        else:
            parts += _of_passages(of_reader, folder, rankings, settings, read, sets)
    return parts


def _of_passages(
    outcomes: Path, folder: Path, rankings: Mapping[str, Any], settings: ReportArms, read: Read, sets: Sets
) -> list[str]:
    rows = settings.reading.trainings
    measured = {row: Outcomes([outcomes / f"{name}.parquet" for name in trainings]) for row, trainings in rows.items()}
    _write_details(folder, outcomes, rows, sets)
    parts = [f"# Answers of the reader {outcomes.name}"]
    if read.questions is not None:
        parts += [f"At most {read.questions:,} questions of each set are read, the same from every ranking."]
    pairs = [pair for pair in settings.only(rows).comparisons if measured.keys() >= {*pair}]
    for name in sets.evaluate:
        count = len(next(iter(measured.values())).per_question(name, read.metrics[0]).question_ids)
        cells = [
            [
                row,
                *(f"{100 * of_row.per_question(name, metric).mean:.1f}" for metric in read.metrics),
                md.share(averaged([rankings[one][name] for one in rows[row] if one in rankings] or [{}]), "aa"),
            ]
            for row, of_row in measured.items()
        ]
        parts += [f"## {name}: {count:,} questions", md.table(["%", *map(title, read.metrics), "AA"], cells)]
        compared = rows_of_pairs(measured, pairs, name, read.metrics)
        parts += difference_table(compared, [title(metric) for metric in read.metrics], settings)
    _write_curves(folder, f"em-{outcomes.name}", measured, read, sets)
    return parts


def title(metric: str) -> str:
    """`em_5` -> EM, top-5."""
    kind, k = metric.split("_")
    return f"{kind.upper()}, top-{k}"


def _write_curves(folder: Path, file: str, measured: Tables, read: Read, sets: Sets) -> None:
    """Exact match over the passages that are read."""
    rows, curves = [], {}
    for name in sets.evaluate:
        shares = {row: [of.per_question(name, f"em_{k}").mean for k in read.top_k] for row, of in measured.items()}
        rows += [(*point, row, name) for row, of in shares.items() for point in zip(read.top_k, of, strict=True)]
        curves[name] = {row: (read.top_k, of) for row, of in shares.items()}
    plot_data.write_csv(folder / f"{file}.csv", ["passages", "em", "arm", "question_set"], rows)
    files.write_text(folder / f"{file}.svg", plots.exact_match(curves, list(measured)))


def _of_paths(outcomes: Path, folder: Path, settings: ReportArms, sets: Sets) -> list[str]:
    """Answers and their supporting sentences (001, Tables 5 and 10), bridge questions and comparisons apart too."""
    rows = settings.reading.trainings
    measured = {row: Outcomes([outcomes / f"{name}.parquet" for name in trainings]) for row, trainings in rows.items()}
    found = _write_details(folder, outcomes, rows, sets)
    parts = [f"# Answers of the reader of paths {outcomes.name}"]
    for name in sets.evaluate:
        of_set = {row: averaged([found[one][name] for one in trainings]) for row, trainings in rows.items()}
        if count := next(iter(of_set.values())).get("n_supporting"):
            parts += [f"## {name}: {count:,} questions", _table_of_paths(of_set)]
            for kind in next(iter(of_set.values())).get("by_hop_type", {}):
                of_kind = {ranking: of["by_hop_type"][kind] for ranking, of in of_set.items()}
                n = next(iter(of_kind.values()))["n_supporting"]
                parts += [f"{KINDS.get(kind, kind)} (n={n:,}):", _table_of_paths(of_kind)]
            compared = rows_of_pairs(measured, comparisons_of_paths(settings.only(rows)), name, list(OF_PATHS))
            parts += difference_table(compared, list(OF_PATHS.values()), settings)
    return parts


def _table_of_paths(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [[name, *(f"{100 * of_row[metric]:.1f}" for metric in OF_PATHS)] for name, of_row in found.items()]
    return md.table(["%", *OF_PATHS.values()], rows)


def comparisons_of_paths(settings: ReportArms) -> list[tuple[str, str]]:
    """Pairs (ranking, what it is compared with), each once: with the one that report.compare names where that is read
    too, else with the first."""
    first = settings.arms[0]
    pairs: list[tuple[str, str]] = []
    for name in settings.arms:
        other = settings.compare.get(name, first)
        pair = (name, other if other in settings.arms else first)
        if name != pair[1] and pair[::-1] not in pairs:
            pairs.append(pair)
    return pairs


def _write_details(folder: Path, outcomes: Path, rows: Mapping[str, list[str]], sets: Sets) -> dict[str, Any]:
    """The summary of every table of a reader, also as a JSON file each."""
    names = [name for trainings in rows.values() for name in trainings]
    found = {name: summary(outcomes / f"{name}.parquet", sets.evaluate) for name in names}
    for name, of_ranking in found.items():
        files.write_json(folder / "metrics" / outcomes.parent.name / outcomes.name / f"{name}.json", of_ranking)
    return found
