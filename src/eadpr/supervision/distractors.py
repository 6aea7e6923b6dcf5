"""Stage `distractors`: positives without their evidence, in several forms, checked, with a report of the reasons why
some were dropped.

Placebos are among them: positives changed as a distractor is, with their evidence.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, SetMember
from eadpr.supervision.config import Distractors
from eadpr.supervision.fillers import pool_fillers
from eadpr.supervision.forms import KEPT, make_forms
from eadpr.supervision.pairs import Pair, read_annotated_pairs

Rows = tuple[Pair, list[Evidence]]


def write_distractors(settings: Distractors, *, records: Path, positives: Path, evidence: Path, out: Path) -> int:
    """Write distractors.parquet and report.json to the folder `out`; return the number of distractors."""
    sets: dict[str, list[str]] = {}  # by question
    for member in tables.rows(records / "question_sets.parquet", SetMember):
        sets.setdefault(member.question_id, []).append(f"{member.question_set}/{member.split}")
    fillers = pool_fillers(records / "passages.parquet", settings.seed) if "filled" in settings.forms else None
    counts = Counter[tuple[str, str, str, str]]()

    def make_distractors() -> Iterator[Distractor]:
        for pair, rows in _join_evidence(records, positives / "positives.parquet", evidence):
            for row, form, attempt in make_forms(pair, rows, settings.forms, fillers):
                counts.update((name, row.strategy, form, attempt.reason) for name in sets.get(row.question_id, ()))
                if attempt.distractor:
                    yield attempt.distractor

    with files.new_folder(out) as folder:
        count = tables.write(folder / "distractors.parquet", Distractor, make_distractors())
        files.write_json(folder / "report.json", _report(counts))
    return count


def _report(counts: Counter[tuple[str, str, str, str]]) -> dict[str, Any]:
    """Return, by question set, strategy and form, the numbers of pairs, kept, and dropped by reason."""
    report: dict[str, Any] = {}
    for (name, strategy, form, reason), count in counts.items():
        by_form = report.setdefault(name, {}).setdefault(strategy, {})
        cell = by_form.setdefault(form, {"pairs": 0, KEPT: 0, "dropped": {}})
        cell["pairs"] += count
        (cell if reason == KEPT else cell["dropped"])[reason] = count
    return report


def _join_evidence(records: Path, positives: Path, evidence: Path) -> Iterator[Rows]:
    """Yield every pair with its rows of evidence; both files have the pairs in the same order."""
    groups = groupby(tables.rows(evidence, Evidence), key=lambda row: (row.question_id, row.passage_id))
    for pair, (_, rows) in zip(read_annotated_pairs(records, positives, evidence), groups, strict=True):
        yield pair, list(rows)
