"""Where the source says the evidence of a positive stands: character offsets, or NQ's gold pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, Protocol

from eadpr import text
from eadpr.corpus import text_files
from eadpr.corpus.given import GivenContext, GivenQuestion, field_of, id_of, shown, text_of, texts_of
from eadpr.records import Span

AROUND = 10  # tokens either side of an answer by which two copies of a page are aligned


class Gold(Protocol):
    """`spans` are offsets into the context's text, None where the source says nothing about it."""

    def spans(self, question: GivenQuestion, context: GivenContext) -> list[Span] | None: ...

    def finish(self) -> None: ...


class GoldOffsets:
    """JSONL of question, passage_id, answer, answer_start; every row must belong to a positive and point there.

    Held in memory: an annotation per question.
    """

    def __init__(self, path: Path) -> None:
        self._found: dict[tuple[str, str], list[tuple[str, str, int]]] = {}
        self._used: set[tuple[str, str]] = set()
        for line, item in text_files.jsonl(path):
            where = f"{path}, line {line}"
            for name in ("question", "passage_id", "answer", "answer_start"):
                field_of(item, where, name)
            start = item["answer_start"]
            if not isinstance(start, int) or isinstance(start, bool) or start < 0:
                raise ValueError(f"{where}: answer_start is {shown(start)}, expected a character offset from 0")
            key = text_of(item["question"], where, "question"), id_of(item["passage_id"], where, "passage_id")
            self._found.setdefault(key, []).append((where, text_of(item["answer"], where, "answer"), start))

    def spans(self, question: GivenQuestion, context: GivenContext) -> list[Span] | None:
        """Of the rows for question and passage those with one of its answers (it may stand twice), else all."""
        key = question.question, context.passage_id or ""
        found = self._found.get(key)
        if found is None:
            return None
        self._used.add(key)
        spans = set()
        for where, answer, start in [row for row in found if row[1] in question.answers] or found:
            there = (context.text or "")[start : start + len(answer)]
            if there != answer:
                raise ValueError(
                    f"{where}: answer_start {start} of passage {key[1]} points at {shown(there)},"
                    f" not at {shown(answer)}; offsets count characters of the text in {question.where}"
                )
            spans.add(Span(start, start + len(answer)))
        return sorted(spans)

    def finish(self) -> None:
        for key, rows in self._found.items():
            if key not in self._used:
                raise ValueError(
                    f"{rows[0][0]}: no question {shown(key[0])} has passage {shown(key[1])} as a positive;"
                    " remove the row"
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
        with text_files.opened(path) as file:
            try:
                rows = json.loads(file.read().decode("utf-8-sig"))["data"]
            except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: expected a JSON object with a list `data` ({error!r})") from None
        self._pages: dict[str, _Page] = {}
        for i, row in enumerate(rows):
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

    def spans(self, question: GivenQuestion, context: GivenContext) -> list[Span] | None:
        page = self._pages.get(question.question)
        if page is None or context.text is None or page.title != (context.title or "").casefold():
            return None
        return sorted({span for answer in page.answers for span in _aligned(answer, page.text, context.text)}) or None

    def finish(self) -> None:
        """Gold pages of questions that DPR dropped are of no concern."""


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
