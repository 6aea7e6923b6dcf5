"""Where the source says the evidence of a positive stands: character offsets, or NQ's gold pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eadpr import text
from eadpr.corpus import file_rows
from eadpr.corpus.given import GivenContext, GivenQuestion, field_of, id_of, shown, text_of, texts_of
from eadpr.records import Span

BEYOND = 2**30  # characters: more than any text has, less than a column of offsets holds
AROUND = 10  # tokens either side of an answer by which two copies of a page are aligned


def gold_offsets(path: Path) -> Iterator[tuple[str, str, str, str, int]]:
    """JSONL of question, passage_id, answer and answer_start, the answer's offset in the text of that positive; each
    with its place before them."""
    for where, item in file_rows.objects(path):
        question, passage_id, answer, start = (
            field_of(item, where, name) for name in ("question", "passage_id", "answer", "answer_start")
        )
        if not isinstance(start, int) or isinstance(start, bool) or start < 0:
            raise ValueError(f"{where}: answer_start is {shown(start)}, expected a character offset from 0")
        yield (
            where,
            text_of(question, where, "question"),
            id_of(passage_id, where, "passage_id"),
            text_of(answer, where, "answer"),
            min(start, BEYOND),
        )


class _Page(NamedTuple):
    title: str
    text: str
    answers: list[str]


class GoldPages:
    """NQ's gold_info, held in memory.

    A positive from the gold page has its evidence where a short answer stands among the same words as in the gold
    context. Positives of other pages, and those without a short answer, have none.
    """

    def __init__(self, path: Path) -> None:
        with file_rows.opened(path) as file:
            try:
                found = json.loads(file.read().decode("utf-8-sig"))["data"]
            except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: expected a JSON object with a list `data` ({error!r})") from None
        self._pages: dict[str, _Page] = {}
        for i, row in enumerate(found):
            where = f"{path}, data[{i}]"
            for name in ("question", "title", "context", "short_answers"):
                field_of(row, where, name)
            page = _Page(
                text_of(row["title"], where, "title", empty=True).casefold(),
                text_of(row["context"], where, "context", empty=True),
                texts_of(row["short_answers"], where, "short_answers"),
            )
            for name in ("question", "question_tokens"):
                if name in row:
                    self._pages.setdefault(text_of(row[name], where, name), page)

    def spans(self, question: GivenQuestion, context: GivenContext) -> list[Span]:
        """Offsets into the context's text."""
        page = self._pages.get(question.question)
        if page is None or context.text is None or page.title != (context.title or "").casefold():
            return []
        return sorted({span for answer in page.answers for span in _aligned(answer, page.text, context.text)})


def _aligned(answer: str, source: str, target: str) -> list[Span]:
    """Of the places of the answer in `target` the one whose neighbouring tokens agree best with a place in `source`."""
    places = text.answer_spans([answer], target)
    if len(places) < 2:
        return places
    models = [_neighbours(source, place) for place in text.answer_spans([answer], source)]
    if not models:
        return []
    return [max(places, key=lambda place: max(_agreement(_neighbours(target, place), model) for model in models))]


def _neighbours(where: str, place: Span) -> tuple[list[str], list[str]]:
    """Tokens before the place, nearest first, and after it."""
    before = text.tokens(where[max(0, place.start - 20 * AROUND) : place.start])[::-1]
    return before[:AROUND], text.tokens(where[place.end : place.end + 20 * AROUND])[:AROUND]


def _agreement(one: tuple[list[str], list[str]], other: tuple[list[str], list[str]]) -> int:
    """Number of tokens, counted outwards from the place on either side, that are the same without a break."""
    total = 0
    for mine, theirs in zip(one, other, strict=True):
        for a, b in zip(mine, theirs, strict=False):
            if a != b:
                break
            total += 1
    return total
