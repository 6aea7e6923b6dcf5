"""PAQ: questions generated from passages, as Sciavolino et al. (2021, section 5.1) train with them.

Of passages with enough questions a sample is drawn, of each one question, and they are parted 70/15/15: paq/train,
/dev, /test. PAQ has 65 million questions: its metadata is read twice, memory holds the engine's counts and the sample.
"""

from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.formats.trex_facts import assign_splits
from eadpr.corpus.rows import GivenContext, GivenGold, GivenQuestion, Row, digest
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Section
from eadpr.storage import engine

SHARES = {"train": 70, "dev": 15, "test": 15}  # per cent


class Paq(Section):
    """Which part of PAQ is taken; the comments in settings/defaults.yaml say what each key does."""

    min_questions: int = Field(ge=1)
    passages: int = Field(ge=1)
    seed: int = Field(ge=0)


class _Source(NamedTuple):
    passage_id: str


def sample_paq(path: Path, paq: Paq) -> list[GivenQuestion]:
    """Return one question of each passage of the sample, in the order the passages are drawn.

    A question of several of them is asked of one only, so a passage is left out if others have all its questions.
    """
    draws = _draw_passages(path, paq)
    sample = frozenset(draws)
    best: dict[int, tuple[int, GivenQuestion]] = {}
    for row, spans in _read_rows(path, "sample of PAQ"):
        by_draw = {digest(str(paq.seed), passage_id): passage_id for passage_id in spans}
        in_sample = sample.intersection(by_draw)
        if not in_sample:
            continue
        draw, question = min(in_sample), row.text("question")
        key = digest(str(paq.seed), question)
        if draw not in best or key < best[draw][0]:
            passage_id, (answer, start) = by_draw[draw], spans[by_draw[draw]]
            fields = {
                "answers": list(dict.fromkeys([answer, *row.texts("answer")])),  # the last by the consistency filter
                "contexts": [GivenContext("positive", 0, passage_id)],
                "annotations": [GivenGold(row.where, question, passage_id, [answer], start)],
            }
            best[draw] = key, GivenQuestion(row.where, row.number, question, set="paq", **fields)
    splits = zip(draws, assign_splits(len(draws), SHARES), strict=True)
    return [best[draw][1]._replace(split=split) for draw, split in splits if draw in best]


def _draw_passages(path: Path, paq: Paq) -> list[int]:
    """Return the smallest hashes, in order, of passages that have enough questions."""
    with engine.connect() as connection:
        with engine.filling(connection, "spans", _Source) as append:
            for _, spans in _read_rows(path, "passages of PAQ"):
                for passage_id in spans:
                    append((passage_id,))
        query = "SELECT passage_id FROM spans GROUP BY passage_id HAVING count(*) >= $least"
        batches = engine.batches(connection, query, {"least": paq.min_questions})
        ids = (passage_id for batch in batches for passage_id in batch[0].to_pylist())
        return nsmallest(paq.passages, (digest(str(paq.seed), passage_id) for passage_id in ids))


def _read_rows(path: Path, label: str) -> Iterator[tuple[Row, dict[str, tuple[str, int]]]]:
    """Yield questions with the passages that they were made from: in each the first answer and its offset, gold."""
    with progress(label, None, "questions") as advance:
        for row in read_objects(path):
            if not isinstance(row.value("answer"), list):
                row.fields["answer"] = [row.value("answer")]
            spans: dict[str, tuple[str, int]] = {}
            for span in row.objects("answers"):
                spans.setdefault(span.id("passage_id"), (span.text("text"), span.offset("offset")))
            yield row, spans
            advance(1)
