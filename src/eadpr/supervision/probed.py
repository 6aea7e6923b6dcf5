"""Positives with their distractors, placebos and masked texts: the pairs of texts that `probe` scores."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eadpr.storage import tables
from eadpr.storage.records import Distractor
from eadpr.supervision.pairs import Pair, read_pairs
from eadpr.supervision.spans import without
from eadpr.text.answers import answer_spans


def first_pairs_with_cuts(
    records: Path, positives: Path, distractors: Path, strategies: Collection[str], ids: Sequence[str]
) -> Iterator[tuple[Pair, dict[str, str]]]:
    """Yield the first pair of each of the questions `ids`, as `pairs_with_cuts` does; `positives` and `distractors` are
    tables."""
    rows = pairs_with_cuts(read_pairs(records, positives, ids), distractors, strategies, ids)
    return (next(group) for _, group in groupby(rows, key=lambda row: row[0].question.id))


def pairs_with_cuts(
    pairs: Iterable[Pair], distractors: Path, strategies: Collection[str], ids: Sequence[str]
) -> Iterator[tuple[Pair, dict[str, str]]]:
    """Yield each pair with the texts of its distractors of form cut, by strategy. `pairs` are all pairs of the
    questions `ids`, in the order of the table `distractors`."""
    groups = groupby(_cuts(distractors, strategies, ids), key=itemgetter(0, 1))
    key, rows = next(groups, (None, ()))
    for pair in pairs:
        texts: dict[str, str] = {}
        if key == (pair.question.id, pair.passage.id):
            texts = {strategy: text for _, _, strategy, text in rows}
            key, rows = next(groups, (None, ()))
        yield pair, texts
    if key is not None:
        raise ValueError(f"{distractors} does not belong to the positives: pair {key}; run `dvc repro distractors`")


def mask_answers(text: str, answers: Sequence[str], kind: str) -> str | None:
    """Return the text without any match of an answer, also those that removal brings about. Return None if there is no
    match or if nothing remains."""
    spans = answer_spans(answers, text, kind)
    if not spans:
        return None
    while spans:
        shorter = without(text, spans)
        if len(shorter) >= len(text):  # a pattern can match the very space that joins the rest
            return None
        text, spans = shorter, answer_spans(answers, shorter, kind)
    return text if text.strip() else None


def _cuts(distractors: Path, strategies: Collection[str], ids: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield question, passage, strategy and text of each distractor of form cut."""
    columns = ["question_id", "passage_id", "strategy", "text"]
    for batch in tables.batches(distractors, Distractor, columns=[*columns, "form"]):
        cut = pc.equal(batch["form"], "cut")
        for column, values in (("strategy", strategies), ("question_id", ids)):
            cut = pc.and_(cut, pc.is_in(batch[column], value_set=pa.array(values, pa.string())))
        rows = batch.filter(cut)
        yield from zip(*(rows[name].to_pylist() for name in columns), strict=True)
