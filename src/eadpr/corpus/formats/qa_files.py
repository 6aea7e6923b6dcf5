"""Questions without DPR's training lists: DPR's `.qa.csv`, TREC's regular expressions, RAMDocs; and files that say
where the evidence of training questions stands: character offsets, or NQ's gold pages.

RAMDocs (Wang et al., 2025) asks about names that several things share, with documents of type correct, misinfo or
noise. The correct ones are positives; the others look alike, and become near-duplicates.
"""

import ast
import json
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats import file_rows
from eadpr.corpus.rows import GivenContext, GivenGold, GivenQuestion, Row, numbered, rows, shown, texts_of
from eadpr.storage.records import Span
from eadpr.text import answers as text

DOCUMENTS = ("correct", "misinfo", "noise")  # of RAMDocs
_DOCUMENT = f"an object of text and type ({', '.join(DOCUMENTS)})"
BEYOND = 2**30  # characters: more than any text has, less than a column of offsets holds
_CLOSE = re.compile(r"""['"]\s*[a-zA-Z]?['"]""")  # perhaps two texts without a comma between them
AROUND = 10  # tokens either side of an answer by which two copies of a page are aligned


def list_of(cell: str, where: str, field: str) -> list[Any]:
    """A list written as a JSON or Python literal; nothing is ever evaluated. numpy's is refused, which Python reads as
    one text: it has no commas."""
    try:
        try:
            found = json.loads(cell)
        except ValueError:
            found = ast.literal_eval(cell)
            if isinstance(found, list | tuple) and _CLOSE.search(cell) and _literals(cell) > len(found):
                raise ValueError from None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"{where}: {field} is {shown(cell)}, expected a list of texts such as [\"a\", 'b']") from None
    if not isinstance(found, list | tuple):
        raise ValueError(f"{where}: {field} is {shown(found)}, expected a list of texts")
    return list(found)


def _literals(cell: str) -> int:
    return sum(token.type == tokenize.STRING for token in tokenize.generate_tokens(StringIO(cell).readline))


def qa_csv(path: Path) -> Iterator[GivenQuestion]:
    """DPR's question sets: two cells, question and list of answers, no header, quoted as in CSV."""
    for row in numbered(file_rows.tsv(path, ("question", "answers"))):
        answers = texts_of(list_of(row.fields["answers"], row.where, "answers"), row.where, "answers")
        yield GivenQuestion(row.where, row.number, row.text("question"), answers)


def trec(path: Path) -> Iterator[GivenQuestion]:
    """Id, type, question and one regular expression per line, separated by tabs and never quoted."""
    for row in numbered(file_rows.tsv(path, ("id", "type", "question", "pattern"), quoted=False)):
        answers = [row.text("pattern", empty=True)]
        yield GivenQuestion(row.where, row.number, row.text("question"), answers, "regex", type=row.text("type"))


def ramdocs(path: Path) -> Iterator[GivenQuestion]:
    """A document has neither id nor title: prepare.add_context_passages must let it join the corpus. The role of one
    that is not correct is its type.

    Documents of one row with the same text are one, of the first type; noise that holds NUL (17 documents, of binary
    files) is left out.
    """
    for row in rows(path):
        question, answers = row.text("question"), row.texts("gold_answers")
        roles: dict[str, str] = {}
        for document in row.objects("documents", _DOCUMENT, needed=("text", "type")):
            role = document.fields["type"]
            if role not in DOCUMENTS:
                raise ValueError(f"{document.where} is {shown(document.fields)}, expected {_DOCUMENT}")
            if role != "noise" or "\0" not in str(document.fields["text"]):
                roles.setdefault(document.text("text"), "positive" if role == "correct" else role)
        positives_first = sorted(roles.items(), key=lambda of: of[1] != "positive")
        contexts = [GivenContext(role, n, None, text=text) for n, (text, role) in enumerate(positives_first)]
        yield GivenQuestion(row.where, row.number, question, answers, contexts=contexts)


def gold_offsets(path: Path) -> Iterator[GivenGold]:
    """JSONL of question, passage_id, answer and answer_start, the answer's offset in the text of that positive."""
    for row in rows(path):
        start = min(row.whole("answer_start", "a character offset from 0"), BEYOND)
        yield GivenGold(row.where, row.text("question"), row.id("passage_id"), row.text("answer"), start)


class GoldPage(NamedTuple):
    """`title` as it is written; titles are the same that differ by case alone."""

    title: str
    text: str
    answers: list[str]


class GoldPages:
    """NQ's gold_info, held in memory.

    A positive from the gold page has its evidence where a short answer stands among the same words as in the gold
    context. Positives of other pages, and those without a short answer, have none. A question that names no passage has
    the passage of the gold page in which a short answer stands among most of these words.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages: dict[str, GoldPage] = {}
        for row in Row(str(path), 0, {"data": file_rows.data_of(path)}).objects("data"):
            title, context = row.text("title", empty=True), row.text("context", empty=True)
            page = GoldPage(title, context, row.texts("short_answers"))
            self._pages.setdefault(row.text("question"), page)
            if "question_tokens" in row.fields:
                self._pages.setdefault(row.text("question_tokens"), page)

    def spans(self, question: str, context: GivenContext) -> list[Span]:
        """Offsets into the context's text."""
        page = self._pages.get(question)
        if page is None or context.text is None or page.title.casefold() != context.title.casefold():
            return []
        return sorted({span for answer in page.answers for span in _aligned(answer, page.text, context.text)})

    def titles(self, questions: Collection[str]) -> list[str]:
        """Of the gold pages of these questions."""
        return sorted({self._pages[question].title for question in questions if question in self._pages})

    def located(self, questions: Collection[str], passages: Iterable[tuple[str, str, str]]) -> Iterator[GivenGold]:
        """Where in which of the passages (id, title, text) each question's short answer stands; questions whose gold
        page or answer is not among them are left out."""
        asked: dict[str, list[str]] = {}
        for question in dict.fromkeys(questions):
            if question in self._pages:
                asked.setdefault(self._pages[question].title.casefold(), []).append(question)
        best: dict[str, tuple[int, str, str, int]] = {}
        for passage_id, title, passage in passages:
            for question in asked.get(title.casefold(), ()):
                page = self._pages[question]
                for score, place in _agreeing(page, passage):
                    if score > best.get(question, (0,))[0]:
                        best[question] = score, passage_id, passage[place.start : place.end], place.start
        for question in filter(best.__contains__, dict.fromkeys(questions)):
            yield GivenGold(f"{self._path}: the gold page of {shown(question)}", question, *best[question][1:])


def _agreeing(page: GoldPage, passage: str) -> Iterator[tuple[int, Span]]:
    """Places of the page's answers in a passage, with the number of neighbouring tokens that are the page's."""
    for answer in page.answers:
        if places := text.answer_spans([answer], passage):
            models = [_neighbours(page.text, place) for place in text.answer_spans([answer], page.text)]
            for place in places:
                yield max((_agreement(_neighbours(passage, place), model) for model in models), default=0), place


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
    sides = (zip(mine, theirs, strict=False) for mine, theirs in zip(one, other, strict=True))
    return sum(1 for side in sides for _ in takewhile(lambda both: both[0] == both[1], side))
