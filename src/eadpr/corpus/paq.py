"""A sample of PAQ, questions generated from passages, as Sciavolino et al. (2021, section 5.1) draw it.

Of the passages with enough questions a sample is drawn, of each passage one question, and the passages are parted
70/15/15: paq/train, /dev, /test. PAQ has 65 million questions: its metadata file is read twice, memory is that of a few
million counts and of the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path
from typing import Any

from pydantic import Field

from eadpr.config import Section
from eadpr.corpus import text_files
from eadpr.corpus.given import GivenContext, GivenQuestion, field_of, id_of, shown, text_of, texts_of
from eadpr.corpus.known import digest
from eadpr.corpus.shares import splits
from eadpr.progress import progress

SET = "paq"
SHARES = {"train": 70, "dev": 15, "test": 15}  # per cent
ROOM = 4_000_000  # passages counted before those are dropped that cannot be in the sample


class Paq(Section):
    """Which part of PAQ is taken; the comments in params.yaml say what each key does."""

    min_questions: int = Field(ge=1)
    passages: int = Field(ge=1)
    seed: int = Field(ge=0)


def sampled(path: Path, paq: Paq, *, room: int = ROOM) -> list[GivenQuestion]:
    """One question of each passage of the sample, in the order the passages are drawn.

    A question that was generated from several of them is asked of one only, so a passage whose questions are all asked
    of others is left out.
    """
    drawn = _passages(path, paq, room)
    sample = frozenset(drawn)
    best: dict[int, tuple[int, GivenQuestion]] = {}
    for row, where, item in _items(path, "sample of PAQ"):
        spans = {_draw(paq, passage_id): (passage_id, text) for passage_id, text in _spans(item, where).items()}
        within = sample.intersection(spans)
        if not within:
            continue
        passage = min(within)
        asked = text_of(item["question"], where, "question")
        key = digest(str(paq.seed), asked)
        if passage not in best or key < best[passage][0]:
            best[passage] = key, _question(row, where, asked, item, *spans[passage])
    parted = zip(drawn, splits(len(drawn), SHARES), strict=True)
    return [best[passage][1]._replace(split=split) for passage, split in parted if passage in best]


def _question(row: int, where: str, asked: str, item: dict[str, Any], passage_id: str, text: str) -> GivenQuestion:
    """The answers: as the passage has it, then what the consistency filter answered."""
    filtered = item["answer"] if isinstance(item["answer"], list) else [item["answer"]]
    return GivenQuestion(
        where=where,
        row=row,
        question=asked,
        answers=list(dict.fromkeys([text, *texts_of(filtered, where, "answer")])),
        answer_kind="string",
        set=SET,
        split="train",
        contexts=[GivenContext("positive", 0, passage_id, None, None)],
    )


def _passages(path: Path, paq: Paq, room: int) -> list[int]:
    """What the drawn passages have for a draw, in order: the smallest ones of those with enough questions.

    Counts only grow, so that whatever lies above the sample of the passages counted so far can be forgotten.
    """
    counts: dict[int, int] = {}
    limit = 1 << 64
    for _, where, item in _items(path, "passages of PAQ"):
        for passage_id in _spans(item, where):
            draw = _draw(paq, passage_id)
            if draw < limit:
                counts[draw] = counts.get(draw, 0) + 1
        if len(counts) > room:
            found = _smallest(counts, paq)
            if len(found) == paq.passages:
                limit = found[-1] + 1
                counts = {draw: count for draw, count in counts.items() if draw < limit}
            room = max(room, 2 * len(counts))
    return _smallest(counts, paq)


def _smallest(counts: dict[int, int], paq: Paq) -> list[int]:
    return nsmallest(paq.passages, (draw for draw, count in counts.items() if count >= paq.min_questions))


def _draw(paq: Paq, passage_id: str) -> int:
    return digest(str(paq.seed), passage_id)


def _items(path: Path, label: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    with progress(label, None, "questions") as advance:
        for row, (line, item) in enumerate(text_files.jsonl(path), start=1):
            where = f"{path}, line {line}"
            for field in ("question", "answer", "answers"):
                field_of(item, where, field)
            yield row, where, item
            advance(1)


def _spans(item: dict[str, Any], where: str) -> dict[str, str]:
    """Passages that the question was generated from, with the first answer span in each."""
    if not isinstance(item["answers"], list):
        raise ValueError(f"{where}: answers is {shown(item['answers'])}, expected a list")
    found: dict[str, str] = {}
    for i, span in enumerate(item["answers"]):
        place = f"{where}: answers[{i}]"
        if not isinstance(span, dict) or not {"passage_id", "text"} <= span.keys():
            raise ValueError(f"{place} is {shown(span)}, expected an object with passage_id and text")
        passage_id = id_of(span["passage_id"], place, "passage_id")
        found.setdefault(passage_id, text_of(span["text"], place, "text"))
    return found
