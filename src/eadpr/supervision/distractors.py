"""Stage `distractors`: positives without evidence, in several forms, checked, with a report of why some were dropped.

Placebos are among them: positives changed as a distractor is, with their evidence.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, SetMember
from eadpr.supervision.config import Distractors
from eadpr.supervision.fillers import pool_fillers
from eadpr.supervision.forms import KEPT, make_forms
from eadpr.supervision.pairs import read_annotated_pairs


def write_distractors(settings: Distractors, *, records: Path, positives: Path, evidence: Path, out: Path) -> int:
    """Write distractors.parquet and report.json to the folder `out`; return the number of distractors."""
    sets: dict[str, list[str]] = {}  # by question
    for member in tables.rows(records / "question_sets.parquet", SetMember):
        sets.setdefault(member.question_id, []).append(f"{member.question_set}/{member.split}")
    fillers = pool_fillers(records / "passages.parquet", settings.seed) if "filled" in settings.forms else None
    counts = Counter[tuple[str, str, str, str]]()

    def make_distractors() -> Iterator[Distractor]:
        """Make those of each pair from its rows of evidence; both files have the pairs in the same order."""
        pairs = read_annotated_pairs(records, positives / "positives.parquet", evidence)
        groups = groupby(tables.rows(evidence, Evidence), key=attrgetter("question_id", "passage_id"))
        for pair, (_, rows) in zip(pairs, groups, strict=True):
            for row, form, attempt in make_forms(pair, list(rows), settings.forms, fillers):
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
