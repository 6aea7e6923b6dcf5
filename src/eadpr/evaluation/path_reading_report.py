"""The stage `path_reading_report`: what one reader of paths answers from the rankings of several two-hop retrievers
(001, Tables 5 and 10), bridge questions and comparisons apart too.

Each ranking is compared with the one that report.compare names where that is read too, else with the first; interval
estimates are paired over questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eadpr import files
from eadpr.config import Sets
from eadpr.evaluation import tabulate as md
from eadpr.evaluation.comparisons import Outcomes, difference_table, rows_of_pairs
from eadpr.evaluation.config import ReportArms

COLUMNS = {
    "em": "answer EM",
    "f1": "answer F1",
    "sp_em": "support EM",
    "sp_f1": "support F1",
    "joint_em": "joint EM",
    "joint_f1": "joint F1",
}
KINDS = {"bridge": "Bridge questions", "comparison": "Comparisons"}


def run(outcomes: Path, metrics: Path, out: Path, *, settings: ReportArms, sets: Sets) -> str:
    """Write the folder `out` whole and return the Markdown. `outcomes` and `metrics` are the folders of a reader, which
    names them, with a file for each ranking."""
    measured = {name: Outcomes([outcomes / f"{name}.parquet"]) for name in settings.arms}
    found = {name: json.loads((metrics / f"{name}.json").read_text(encoding="utf-8")) for name in settings.arms}
    parts = [f"# Answers of the reader of paths {outcomes.name}"]
    for name in sets.evaluate:
        of_set = {ranking: report[name] for ranking, report in found.items()}
        count = next(iter(of_set.values()))["n_supporting"]
        if count:
            parts += [f"## {name}: {count:,} questions", _table(of_set)]
            rows = rows_of_pairs(measured, comparisons(settings), name, list(COLUMNS))
            parts += [*_by_hop_type(of_set), *difference_table(rows, list(COLUMNS.values()), settings)]
    markdown = "\n\n".join(parts) + "\n"
    with files.new_folder(out) as folder:
        files.write_text(folder / "table.md", markdown)
    return markdown


def comparisons(settings: ReportArms) -> list[tuple[str, str]]:
    """Pairs (ranking, what it is compared with), each once."""
    first = settings.arms[0]
    pairs: list[tuple[str, str]] = []
    for name in settings.arms:
        other = settings.compare.get(name, first)
        pair = (name, other if other in settings.arms else first)
        if name != pair[1] and pair[::-1] not in pairs:
            pairs.append(pair)
    return pairs


def _table(found: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [[name, *(f"{100 * of_row[metric]:.1f}" for metric in COLUMNS)] for name, of_row in found.items()]
    return md.table(["%", *COLUMNS.values()], rows)


def _by_hop_type(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A table for each type that the questions have."""
    parts = []
    for kind in next(iter(found.values()))["by_hop_type"]:
        of_kind = {name: of_row["by_hop_type"][kind] for name, of_row in found.items()}
        count = next(iter(of_kind.values()))["n"]
        parts += [f"{KINDS.get(kind, kind)} (n={count:,}):", _table(of_kind)]
    return parts
