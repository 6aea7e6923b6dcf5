"""Files that say where the evidence of training questions stands: character offsets, or NQ's gold pages."""

from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.formats.file_rows import read_data, read_objects
from eadpr.corpus.rows import GivenContext, GivenGold, excerpt
from eadpr.storage.records import Span
from eadpr.text import answers as text

AROUND = 10  # tokens either side of an answer by which two copies of a page are aligned


def read_gold_offsets(path: Path) -> Iterator[GivenGold]:
    """Read JSONL of question, passage_id, answer and answer_start, the answer's offset in that positive's text."""
    for row in read_objects(path):
        question, passage_id, answers = row.text("question"), row.id("passage_id"), [row.text("answer")]
        yield GivenGold(row.where, question, passage_id, answers, row.offset("answer_start"))


class GoldPage(NamedTuple):
    title: str
    text: str
    answers: list[str]


class GoldPages:
    """NQ's gold_info, held in memory; titles are the same that differ by case alone.

    A positive from the gold page has its evidence where a short answer stands among the same words as in the gold
    context. Positives of other pages, and those without a short answer, have none. A question that names no passage has
    the passage of the gold page in which a short answer stands among most of them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages: dict[str, GoldPage] = {}
        for row in read_data(path).objects("data"):
            title, context = row.text("title", empty=True), row.text("context", empty=True)
            page = GoldPage(title, context, row.texts("short_answers"))
            self._pages.setdefault(row.text("question"), page)
            if "question_tokens" in row.fields:
                self._pages.setdefault(row.text("question_tokens"), page)

    def evidence(self, question: str, context: GivenContext) -> list[Span]:
        """Return offsets into the context's text."""
        page = self._pages.get(question)
        if page is None or context.text is None or page.title.casefold() != context.title.casefold():
            return []
        spans = set()
        for answer in page.answers:
            scored = _score_places(page, answer, context.text)
            if len(scored) == 1 or any(score for score, _ in scored):
                spans.add(max(scored, key=itemgetter(0))[1])
        return sorted(spans)

    def titles(self, questions: Collection[str]) -> list[str]:
        return sorted({self._pages[question].title for question in questions if question in self._pages})

    def locate(self, questions: Collection[str], passages: Iterable[tuple[str, str, str]]) -> list[GivenGold]:
        """Return in which of the passages (id, title, text) and where each question's short answer stands; questions
        without a gold page, or with an answer that is in no passage of it, are left out."""
        by_title: dict[str, list[str]] = {}
        for question in dict.fromkeys(questions):
            if question in self._pages:
                by_title.setdefault(self._pages[question].title.casefold(), []).append(question)
        best: dict[str, tuple[int, GivenGold]] = {}
        for passage_id, title, passage in passages:
            for question in by_title.get(title.casefold(), ()):
                page, where = self._pages[question], f"{self._path}: the gold page of {excerpt(question)}"
                scored = [pair for answer in page.answers for pair in _score_places(page, answer, passage)]
                score, place = max(scored, key=itemgetter(0), default=(0, Span(0, 0)))
                if score > best.get(question, (0,))[0]:
                    gold = GivenGold(where, question, passage_id, [passage[place.start : place.end]], place.start)
                    best[question] = score, gold
        return [best[question][1] for question in dict.fromkeys(questions) if question in best]


def _score_places(page: GoldPage, answer: str, passage: str) -> list[tuple[int, Span]]:
    """Return an answer's places in a passage, each with the number of neighbouring tokens that the page has too."""
    places = text.answer_spans([answer], passage)
    models = [_neighbours(page.text, place) for place in text.answer_spans([answer], page.text)] if places else []
    around = [[_agreement(_neighbours(passage, place), model) for model in models] for place in places]
    return [(max(scores, default=0), place) for scores, place in zip(around, places, strict=True)]


def _neighbours(passage: str, place: Span) -> tuple[list[str], list[str]]:
    """Return the tokens before the place, nearest first, and after it."""
    preceding = text.tokens(passage[max(0, place.start - 20 * AROUND) : place.start])[::-1]
    return preceding[:AROUND], text.tokens(passage[place.end : place.end + 20 * AROUND])[:AROUND]


def _agreement(first: tuple[list[str], list[str]], second: tuple[list[str], list[str]]) -> int:
    """Count the tokens on either side, outwards from the place, that are the same without a break."""
    sides = (zip(a, b, strict=False) for a, b in zip(first, second, strict=True))
    return sum(1 for side in sides for _ in takewhile(lambda pair: pair[0] == pair[1], side))
