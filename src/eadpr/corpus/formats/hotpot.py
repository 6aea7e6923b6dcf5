"""HotpotQA's files (Yang et al., 2018): questions with their paragraphs, and the corpus of introductory paragraphs.

A paragraph is the first of its page, and files name it by the page's title alone. So the title is the passage's id, and
a question finds its passages in whichever corpus has that page. A paragraph is the concatenation of its sentences,
which hold the spaces between them. Titles are read without HTML's entities and every white space as a plain one, since
files differ in both; a title that stood there otherwise is kept with the context.
"""

import html
import re
import unicodedata
from collections.abc import Collection, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.rows import GivenContext, GivenPassage, GivenQuestion, Row, check_text, unexpected
from eadpr.storage.records import Span, SupportingFact
from eadpr.text.answers import has_answer

COMPARISON = "comparison"
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)$")  # "Mercury (planet)"


class Paragraph(NamedTuple):
    """`written` is the title as the file has it; None for a supporting page outside `context`, without text here."""

    title: str
    text: str
    sentences: list[Span]
    written: str | None

    @property
    def id(self) -> str:
        return passage_id(self.title)

    def as_context(self, role: str, order: int, numbers: Collection[int] = ()) -> GivenContext:
        """Return the context with the supporting sentences `numbers` as gold evidence. Official files name some
        sentences that their paragraphs lack; those are counted."""
        if self.written is None:
            return GivenContext(role, order, self.id)
        present = [i for i in numbers if i < len(self.sentences)]
        context = GivenContext(role, order, self.id, self.title, self.text, sentences=self.sentences)
        gold, missing = sorted({self.sentences[i] for i in present}), len(numbers) - len(present)
        written = None if self.written == self.title else self.written
        return context._replace(gold=gold, gold_missing=missing, written=written)


def plain_title(title: str) -> str:
    return " ".join(unicodedata.normalize("NFC", html.unescape(title)).split())


def passage_id(title: str) -> str:
    return plain_title(title).replace(" ", "_")


def read_paragraph(row: Row, field: str) -> Paragraph:
    """Return the paragraph of a row with a title and, in `field`, a list of sentences."""
    written, sentences = row.text("title"), row.texts(field)
    spans = [Span(start, end) for start, end in pairwise(accumulate(map(len, sentences), initial=0))]
    title = check_text(plain_title(written), row.where, "title")
    return Paragraph(title, re.sub(r"\s", " ", "".join(sentences)), spans, written)


def read_passages(path: Path) -> Iterator[GivenPassage]:
    """Read pages, a JSON object per line with `title` and the sentences `text`: the official archive of the
    introductory paragraphs (bzip2 files in a bzip2 archive), or one such file. Pages without any sentence stay."""
    for row in read_objects(path):
        page = read_paragraph(row, "text")
        yield row.where, page.id, page.title, page.text, page.sentences


def read_questions(path: Path) -> Iterator[GivenQuestion]:
    """Read an official file for training or development, in either setting, one item at a time.

    Positives are supporting paragraphs in hop order, gold evidence the supporting sentences, hard negatives the others.
    """
    for row in read_objects(path):
        question, answer, question_type = row.text("question"), row.text("answer", empty=True), row.optional("type")
        kind = "yes-no" if answer in ("yes", "no") else "string"
        paragraphs = [read_paragraph(pair, "sentences") for pair in _pairs(row, "context", "sentences")]
        pairs = _pairs(row, "supporting_facts", "sentence")
        facts = [SupportingFact(pair.text("title"), pair.offset("sentence")) for pair in pairs]
        numbers: dict[str, list[int]] = {}  # of sentences by plain title, in the order of the titles' first mention
        for fact in facts:
            numbers.setdefault(plain_title(fact.page), []).append(fact.sentence)
        by_title = {paragraph.title: paragraph for paragraph in reversed(paragraphs)}
        supporting = [by_title.get(title, Paragraph(title, "", [], None)) for title in numbers]
        if question_type != COMPARISON:
            supporting = order_hops(question, answer, kind, supporting)
        negatives = [paragraph for paragraph in paragraphs if paragraph not in supporting]
        contexts = [page.as_context("positive", n, numbers[page.title]) for n, page in enumerate(supporting)]
        contexts += [page.as_context("hard_negative", n) for n, page in enumerate(negatives)]
        hops = [paragraph.id for paragraph in supporting]
        item = GivenQuestion(row.where, row.number, question, [answer], kind, type=question_type, contexts=contexts)
        yield item._replace(id=row.id("_id"), hops=hops, facts=facts)


def order_hops(question: str, answer: str, kind: str, supporting: list[Paragraph]) -> list[Paragraph]:
    """Return two supporting paragraphs with the second hop's last.

    The second hop holds the answer. If both do or none does (as for yes and no), it is the one whose title the other
    mentions (Xiong et al., 2021); if that does not tell, the one whose title the question does not mention, since a
    question names where to begin. Else the file's order stays, as for comparisons and any other number of paragraphs.
    """
    if len(supporting) != 2:
        return supporting
    first, second = supporting
    for first_is_last, second_is_last in (
        (has_answer([answer], first.text, kind), has_answer([answer], second.text, kind)),
        (mentions(second.text, first.title), mentions(first.text, second.title)),
        (mentions(question, second.title), mentions(question, first.title)),
    ):
        if first_is_last != second_is_last:
            return [second, first] if first_is_last else [first, second]
    return supporting


def mentions(text: str, title: str) -> bool:
    """Tell whether the title, without a last part in brackets, is in the text, word by word."""
    return has_answer([_IN_BRACKETS.sub("", title) or title], text)


def _pairs(item: Row, name: str, second: str) -> list[Row]:
    """Return the list `name` of pairs, each as a row of a title and the field `second`."""
    pairs = item.value(name)
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise unexpected(item.where, name, pairs, "a list of pairs, each beginning with a title")
    return [
        Row(f"{item.where}: {name}[{i}]", i, {"title": title, second: value}) for i, (title, value) in enumerate(pairs)
    ]
