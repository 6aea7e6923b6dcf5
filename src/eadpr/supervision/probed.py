"""Positives beside what is left of them without evidence, without a placebo or without the answer: what `probe`
scores."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eadpr.storage import tables
from eadpr.storage.records import Distractor
from eadpr.supervision.pairs import Pair, pairs
from eadpr.supervision.spans import without
from eadpr.text.answers import answer_spans


def first_beside(
    records: Path, positives: Path, distractors: Path, strategies: Collection[str], ids: Sequence[str]
) -> Iterator[tuple[Pair, dict[str, str]]]:
    """The first pair of each of these questions that has one, as of `beside`; `positives`, `distractors` are tables."""
    found = beside(pairs(records, positives, ids), distractors, strategies, ids)
    return (next(own) for _, own in groupby(found, key=lambda one: one[0].question.id))


def beside(
    asked: Iterable[Pair], path: Path, strategies: Collection[str], ids: Sequence[str]
) -> Iterator[tuple[Pair, dict[str, str]]]:
    """Each pair with the texts of its distractors of level 0 and form cut, by strategy.

    `asked` are all pairs of the questions `ids` that the stage was given, in their order, which is that of the file.
    """
    groups = groupby(_texts(path, strategies, ids), key=itemgetter(0, 1))
    key, rows = next(groups, (None, ()))
    for pair in asked:
        own: dict[str, str] = {}
        if key == (pair.question.id, pair.passage.id):
            own = {strategy: text for _, _, strategy, text in rows}
            key, rows = next(groups, (None, ()))
        yield pair, own
    if key is not None:
        raise ValueError(f"{path} does not belong to the positives: pair {key}; run `dvc repro distractors`")


def masked(text: str, answers: Sequence[str], kind: str) -> str | None:
    """The text with every match of an answer removed, also those that removal brings about; None if it holds none or
    nothing is left."""
    spans = answer_spans(answers, text, kind)
    if not spans:
        return None
    while spans:
        shorter = without(text, spans)
        if len(shorter) >= len(text):  # a pattern can match the very space that joins what is left
            return None
        text, spans = shorter, answer_spans(answers, shorter, kind)
    return text if text.strip() else None


def _texts(path: Path, strategies: Collection[str], ids: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Question, passage, strategy and text of each distractor of level 0 and form cut."""
    wanted, names = pa.array(ids, pa.string()), pa.array(strategies, pa.string())
    columns = ["question_id", "passage_id", "strategy", "text"]
    for batch in tables.batches(path, Distractor, columns=[*columns, "level", "form"]):
        cut = pc.and_(pc.equal(batch["level"], 0), pc.equal(batch["form"], "cut"))
        own = pc.and_(pc.is_in(batch["strategy"], value_set=names), cut)
        found = batch.filter(pc.and_(own, pc.is_in(batch["question_id"], value_set=wanted)))
        yield from zip(*(found[name].to_pylist() for name in columns), strict=True)
