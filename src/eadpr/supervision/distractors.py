"""Stage `distractors`: positives without their evidence, in several forms, checked, with a report of the reasons why
some were dropped.

Placebos are among them: positives changed as a distractor is, with their evidence.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, SetMember
from eadpr.supervision.config import Distractors
from eadpr.supervision.fillers import fillers
from eadpr.supervision.forms import KEPT, Attempt, Forms
from eadpr.supervision.pairs import Pair, read_annotated_pairs
from eadpr.supervision.swaps import Swaps

Rows = tuple[Pair, list[Evidence]]
# Question set -> strategy -> form -> the numbers of pairs, kept, and dropped by reason.
Report = dict[str, dict[str, dict[str, dict[str, Any]]]]
# Takes pairs with their rows; yields them in order with the attempts of the form `written` by strategy.
Write = Callable[[Iterator[Rows]], Iterator[tuple[Rows, Mapping[str, Attempt]]]]


def write_distractors(
    settings: Distractors,
    *,
    records: Path,
    positives: Path,
    evidence: Path,
    ranking: Path,
    out: Path,
    write: Write | None = None,
) -> int:
    """Write distractors.parquet and report.json to the folder `out`; return the number of distractors. `ranking` is
    BM25's folder, read for fillers of kind `ranked`; `write` makes the distractors of form `written`."""
    sets: dict[str, list[str]] = {}  # by question
    for member in tables.rows(records / "question_sets.parquet", SetMember):
        sets.setdefault(member.question_id, []).append(f"{member.question_set}/{member.split}")
    report: Report = {}
    with files.new_folder(out) as folder:
        distractors = folder / "distractors.parquet"
        with (
            _forms(settings, records, positives, ranking) as forms,
            tables.writing(distractors, Distractor) as append,
            tables.in_chunks(Distractor, append) as add_distractor,
        ):
            joined = _join_evidence(records, positives / "positives.parquet", evidence)
            for (pair, rows), written in write(joined) if write else ((rows, {}) for rows in joined):
                for row, form, attempt in forms.attempts(pair, rows, written):
                    for name in sets.get(row.question_id, ()):
                        _count(report, name, row.strategy, form, attempt.reason)
                    if attempt.distractor:
                        add_distractor(attempt.distractor)
        files.write_json(folder / "report.json", report)
        return tables.count(distractors, Distractor)


@contextmanager
def _forms(settings: Distractors, records: Path, positives: Path, ranking: Path) -> Iterator[Forms]:
    swaps = None
    if "swapped" in settings.forms:
        swaps = Swaps(settings.seed, records=records, folds=positives / "folds.parquet")
    if "filled" not in settings.forms:
        yield Forms(settings, None, swaps)
        return
    inputs = {"records": records, "positives": positives / "positives.parquet", "ranking": ranking}
    with fillers(settings.fillers, seed=settings.seed, **inputs) as sentences:
        yield Forms(settings, sentences, swaps)


def _count(report: Report, question_set: str, strategy: str, form: str, reason: str) -> None:
    by_form = report.setdefault(question_set, {}).setdefault(strategy, {})
    cell = by_form.setdefault(form, {"pairs": 0, KEPT: 0, "dropped": {}})
    cell["pairs"] += 1
    counts = cell if reason == KEPT else cell["dropped"]
    counts[reason] = counts.get(reason, 0) + 1


def _join_evidence(records: Path, positives: Path, evidence: Path) -> Iterator[Rows]:
    """Yield every pair with its rows of evidence; both files have the pairs in the same order."""
    pairs = read_annotated_pairs(records, positives, evidence)
    for key, group in groupby(tables.rows(evidence, Evidence), key=lambda row: (row.question_id, row.passage_id)):
        pair = next(pairs, None)
        if pair is None or (pair.question.id, pair.passage.id) != key:
            raise ValueError(f"{evidence} does not belong to {positives}: pair {key}; run `dvc repro evidence`")
        yield pair, list(group)
