"""Positives with their distractors, placebos and masked texts: the pairs of texts that `probe` scores."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eadpr.storage import tables
from eadpr.storage.records import Distractor
from eadpr.supervision.pairs import Pair, read_pairs
from eadpr.text.answers import answer_spans
from eadpr.text.spans import without


def first_pairs_with_cuts(
    records: Path, positives: Path, distractors: Path, strategies: Collection[str], ids: Sequence[str]
) -> Iterator[tuple[Pair, dict[str, str]]]:
    """Yield the first pair of each of the questions `ids` with the texts of its distractors of form cut, by strategy;
    `positives` and `distractors` are tables."""
    texts: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    condition = (pc.field("form") == "cut") & pc.field("strategy").isin(strategies) & pc.field("question_id").isin(ids)
    for batch in tables.batches(distractors, Distractor):
        for row in pa.Table.from_batches([batch]).filter(condition).to_pylist():
            texts[row["question_id"], row["passage_id"]][row["strategy"]] = row["text"]
    for pair in read_pairs(records, positives, ids, first=True):
        yield pair, texts[pair.question.id, pair.passage.id]


def mask_answers(text: str, answers: Sequence[str], kind: str) -> str | None:
    """Return the text without any match of an answer, even those that removal makes; None without a match or a rest."""
    spans = answer_spans(answers, text, kind)
    if not spans:
        return None
    while spans:
        shorter = without(text, spans)
        if len(shorter) >= len(text):  # a pattern can match the very space that joins the rest
            return None
        text, spans = shorter, answer_spans(answers, shorter, kind)
    return text if text.strip() else None
