"""Stage `distractors`: positives without their evidence, checked, with a report of what was dropped and why."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eadpr import engine, files, tables
from eadpr.records import Distractor, Evidence, SetMember, Span
from eadpr.supervision.config import Distractors
from eadpr.supervision.pairs import Pair, pairs
from eadpr.supervision.spans import merge, without
from eadpr.text import has_answer

KEPT = "kept"
NO_ANSWER, NO_EVIDENCE = "no_answer", "no_evidence"
NOTHING_LEFT, UNCHANGED, HOLDS_ANSWER = "nothing_left", "unchanged", "holds_answer"
PIVOTS = "pivots"


class Attempt(NamedTuple):
    """What became of one row of evidence; `distractor` is None unless the reason is KEPT."""

    reason: str
    distractor: Distractor | None


class Counted(NamedTuple):
    """A row of evidence, or the pivots of a pair, in the counts of the report."""

    made_by = "distractors"
    question_id: str
    strategy: str
    reason: str


def distractor(pair: Pair, evidence: Evidence, *, may_hold_answer: bool) -> Attempt:
    """The passage without the chosen spans, or why there is none.

    no_answer: the question has no answer to look for in the passage; no_evidence: the strategy found nothing;
    nothing_left: no letter or digit is left, as where the passage is one span; unchanged: only white space was removed;
    holds_answer: an answer still stands in the text, and the strategy does not allow that.
    """
    if not evidence.chosen:
        return Attempt(NO_EVIDENCE if evidence.target else NO_ANSWER, None)
    removed = [Span(evidence.spans[i].start, evidence.spans[i].end) for i in evidence.chosen]
    text = without(pair.passage.text, removed)
    if not any(character.isalnum() for character in text):
        return Attempt(NOTHING_LEFT, None)
    if (
        not any(pair.passage.text[start:end].strip() for start, end in removed)
        and text.split() == pair.passage.text.split()
    ):
        return Attempt(UNCHANGED, None)
    if not may_hold_answer and _holds_answer(pair, text):
        return Attempt(HOLDS_ANSWER, None)
    return Attempt(KEPT, Distractor(evidence.question_id, evidence.passage_id, evidence.strategy, 0, text, removed))


def pivots(pair: Pair, rows: Sequence[Evidence], settings: Distractors) -> list[Distractor]:
    """Levels of distractors of one positive: level 0 lacks what the first strategy of `settings.pivots` found, each
    further one what the next strategies found too (docs/methods.md; ours, after the future work of 004).

    A strategy that adds nothing to what is removed already, that leaves nothing, or that leaves an answer where it may
    not, makes no level.
    """
    found = {row.strategy: [Span(row.spans[i].start, row.spans[i].end) for i in row.chosen] for row in rows}
    levels: list[Distractor] = []
    removed: list[Span] = []
    last = pair.passage.text
    for strategy in settings.pivots:
        removed = merge([*removed, *found.get(strategy, [])])
        text = without(pair.passage.text, removed)
        if text.split() == last.split() or not any(character.isalnum() for character in text):
            continue
        last = text
        if settings.may_hold_answer[strategy] or not _holds_answer(pair, text):
            levels.append(Distractor(pair.question.id, pair.passage.id, PIVOTS, len(levels), text, removed))
    return levels


def _holds_answer(pair: Pair, text: str) -> bool:
    return has_answer(pair.question.answers, text, pair.question.answer_kind)


def write_distractors(settings: Distractors, *, records: Path, positives: Path, evidence: Path, out: Path) -> int:
    """Write distractors.parquet and report.json to the folder `out`; returns the number of distractors."""
    with files.new_folder(out) as folder, tempfile.TemporaryDirectory() as temporary:
        kept, outcomes = folder / "distractors.parquet", Path(temporary) / "outcomes.parquet"
        with (
            tables.writing(kept, Distractor) as append_kept,
            tables.in_chunks(Distractor, append_kept) as keep,
            tables.writing(outcomes, Counted) as append_counted,
            tables.in_chunks(Counted, append_counted) as tell,
        ):
            for pair, rows in _joined(records, positives / "positives.parquet", evidence):
                for counted, made in _made(pair, rows, settings):
                    tell(counted)
                    for one in made:
                        keep(one)
        files.write_json(folder / "report.json", report(outcomes, records / "question_sets.parquet"))
        return tables.count(kept, Distractor)


def _made(
    pair: Pair, rows: Sequence[Evidence], settings: Distractors
) -> Iterator[tuple[Counted, Sequence[Distractor]]]:
    """What becomes of each row of evidence of a pair, and of its pivots, with the distractors that this gives."""
    for row in rows:
        outcome = distractor(pair, row, may_hold_answer=settings.may_hold_answer[row.strategy])
        kept = [outcome.distractor] if outcome.distractor else []
        yield Counted(row.question_id, row.strategy, outcome.reason), kept
    if settings.pivots:
        levels, most = pivots(pair, rows, settings), len(settings.pivots)
        reason = KEPT if len(levels) == most else f"{len(levels)}_of_{most}_levels"
        yield Counted(pair.question.id, PIVOTS, reason), levels


def texts(path: Path, strategy: str, ids: Sequence[str]) -> dict[tuple[str, str], str]:
    """The text of each distractor of level 0 of the questions `ids`, by question and positive."""
    wanted, columns = pa.array(ids, pa.string()), ["question_id", "passage_id", "text"]
    found: dict[tuple[str, str], str] = {}
    for batch in tables.batches(path, Distractor, columns=[*columns, "strategy", "level"]):
        first = pc.and_(pc.equal(batch["strategy"], strategy), pc.equal(batch["level"], 0))
        own = batch.filter(pc.and_(first, pc.is_in(batch["question_id"], value_set=wanted)))
        rows = zip(*(own[name].to_pylist() for name in columns), strict=True)
        found |= {(question_id, passage_id): text for question_id, passage_id, text in rows}
    return found


def report(outcomes: Path, question_sets: Path) -> dict[str, dict[str, dict[str, object]]]:
    """strategy -> question set -> number of pairs, kept, and dropped by reason."""
    table: dict[str, dict[str, dict[str, object]]] = {}
    with engine.connect() as connection:
        engine.view(connection, "outcomes", outcomes, Counted)
        engine.view(connection, "question_sets", question_sets, SetMember)
        for strategy, name, reason, n in connection.execute(_COUNTS).fetchall():
            cell = table.setdefault(strategy, {}).setdefault(name, {"pairs": 0, KEPT: 0, "dropped": {}})
            cell["pairs"] += n
            if reason == KEPT:
                cell[KEPT] = n
            else:
                cell["dropped"][reason] = n
    return table


_COUNTS = """
SELECT strategy, question_set || '/' || split AS name, reason, count(*)
FROM outcomes JOIN question_sets USING (question_id) GROUP BY ALL ORDER BY ALL
"""


def _joined(records: Path, positives: Path, evidence: Path) -> Iterator[tuple[Pair, list[Evidence]]]:
    """Every pair with its rows of evidence; both files hold the pairs in the same order."""
    ids = tables.read(evidence, Evidence, columns=["question_id"])["question_id"].unique()
    asked = pairs(records, positives, ids)
    for key, group in groupby(tables.rows(evidence, Evidence), key=lambda row: (row.question_id, row.passage_id)):
        pair = next(asked, None)
        if pair is None or (pair.question.id, pair.passage.id) != key:
            raise ValueError(f"{evidence} does not belong to {positives}: pair {key}; run `dvc repro evidence`")
        yield pair, list(group)
