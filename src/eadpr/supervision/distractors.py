"""Stage `distractors`: positives without their evidence, in several forms, checked, with a report of what was dropped
and why.

What placebos give stands among them: the positive, changed as a distractor is, with its evidence.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.runtime import files
from eadpr.storage import engine, tables
from eadpr.storage.records import Distractor, Evidence, SetMember
from eadpr.supervision.config import Distractors
from eadpr.supervision.fillers import fillers
from eadpr.supervision.forms import KEPT, Attempt, Forms
from eadpr.supervision.pairs import Pair, read_annotated_pairs
from eadpr.supervision.swaps import Swaps

Rows = tuple[Pair, list[Evidence]]
# Pairs with their rows, in their order, and the attempts of the form `written` by strategy.
Write = Callable[[Iterator[Rows]], Iterator[tuple[Rows, Mapping[str, Attempt]]]]


class Counted(NamedTuple):
    """A row of evidence in one form, in the counts of the report."""

    made_by = "distractors"
    question_id: str
    strategy: str
    form: str
    reason: str


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
    """Write distractors.parquet and report.json to the folder `out`; returns the number of distractors.

    `ranking` is the folder of BM25's, read where `fillers` are of it; `write` makes those of the form `written`.
    """
    with files.new_folder(out) as folder, tempfile.TemporaryDirectory() as temporary:
        kept, outcomes = folder / "distractors.parquet", Path(temporary) / "outcomes.parquet"
        with (
            _forms(settings, records, positives, ranking) as forms,
            tables.writing(kept, Distractor) as append_kept,
            tables.in_chunks(Distractor, append_kept) as keep,
            tables.writing(outcomes, Counted) as append_counted,
            tables.in_chunks(Counted, append_counted) as tell,
        ):
            joined = _joined(records, positives / "positives.parquet", evidence)
            for (pair, rows), written in write(joined) if write else ((rows, {}) for rows in joined):
                for row, form, attempt in forms.attempts(pair, rows, written):
                    tell(Counted(row.question_id, row.strategy, form, attempt.reason))
                    if attempt.distractor:
                        keep(attempt.distractor)
        files.write_json(folder / "report.json", report(outcomes, records / "question_sets.parquet"))
        return tables.count(kept, Distractor)


@contextmanager
def _forms(settings: Distractors, records: Path, positives: Path, ranking: Path) -> Iterator[Forms]:
    seed, swaps = settings.seed, None
    if "swapped" in settings.forms:
        swaps = Swaps(seed, records=records, folds=positives / "folds.parquet")
    if "filled" not in settings.forms:
        yield Forms(settings, None, swaps)
        return
    given = {"records": records, "positives": positives / "positives.parquet", "ranking": ranking}
    with fillers(settings.fillers, seed=seed, **given) as found:
        yield Forms(settings, found, swaps)


def report(outcomes: Path, question_sets: Path) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Question set -> strategy -> form -> number of pairs, kept, and dropped by reason."""
    table: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    with engine.connect() as connection:
        engine.view(connection, "outcomes", outcomes, Counted)
        engine.view(connection, "question_sets", question_sets, SetMember)
        for name, strategy, form, reason, n in connection.execute(_COUNTS).fetchall():
            of_strategy = table.setdefault(name, {}).setdefault(strategy, {})
            cell = of_strategy.setdefault(form, {"pairs": 0, KEPT: 0, "dropped": {}})
            cell["pairs"] += n
            (cell if reason == KEPT else cell["dropped"])[reason] = n
    return table


_COUNTS = """
SELECT question_set || '/' || split AS name, strategy, form, reason, count(*)
FROM outcomes JOIN question_sets USING (question_id) GROUP BY ALL ORDER BY ALL
"""


def _joined(records: Path, positives: Path, evidence: Path) -> Iterator[Rows]:
    """Every pair with its rows of evidence; both files hold the pairs in the same order."""
    asked = read_annotated_pairs(records, positives, evidence)
    for key, group in groupby(tables.rows(evidence, Evidence), key=lambda row: (row.question_id, row.passage_id)):
        pair = next(asked, None)
        if pair is None or (pair.question.id, pair.passage.id) != key:
            raise ValueError(f"{evidence} does not belong to {positives}: pair {key}; run `dvc repro evidence`")
        yield pair, list(group)
