"""Positives beside what is left of them without evidence, or without a placebo: what `probe` scores."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eadpr import tables
from eadpr.records import Distractor
from eadpr.supervision.pairs import Pair


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


def _texts(path: Path, strategies: Collection[str], ids: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Question, passage, strategy and text of each distractor of level 0 and form cut."""
    wanted, names = pa.array(ids, pa.string()), pa.array(strategies, pa.string())
    columns = ["question_id", "passage_id", "strategy", "text"]
    for batch in tables.batches(path, Distractor, columns=[*columns, "level", "form"]):
        cut = pc.and_(pc.equal(batch["level"], 0), pc.equal(batch["form"], "cut"))
        own = pc.and_(pc.is_in(batch["strategy"], value_set=names), cut)
        found = batch.filter(pc.and_(own, pc.is_in(batch["question_id"], value_set=wanted)))
        yield from zip(*(found[name].to_pylist() for name in columns), strict=True)
