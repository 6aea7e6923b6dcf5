"""HotpotQA's files (Yang et al., 2018): questions with their paragraphs, and the corpus of introductory paragraphs.

A paragraph is the first of its page, and files name it by the page's title alone. So the title is the passage's id, and
a question finds its passages in whichever corpus has that page. A paragraph is the concatenation of its sentences,
which hold the spaces between them. Titles are read without HTML's entities and every white space as a plain one, since
files differ in both; a title that stood there otherwise is kept with the context.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.rows import GivenContext, GivenPassage, GivenQuestion, Row, rows, shown, text_of
from eadpr.storage.records import Span, SupportingFact
from eadpr.text.answers import has_answer

COMPARISON = "comparison"
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)$")  # "Mercury (planet)"


class Paragraph(NamedTuple):
    """`written` is the title as the file has it; None for a supporting page that is not in the question's `context` and
    has no text here."""

    title: str
    text: str
    sentences: list[Span]
    written: str | None

    @property
    def id(self) -> str:
        return passage_id(self.title)

    def as_context(self, role: str, order: int) -> GivenContext:
        if self.written is None:
            return GivenContext(role, order, self.id)
        written = None if self.written == self.title else self.written
        return GivenContext(role, order, self.id, self.title, self.text, sentences=self.sentences, written=written)


def plain_title(given: str) -> str:
    return " ".join(unicodedata.normalize("NFC", html.unescape(given)).split())


def passage_id(title: str) -> str:
    return plain_title(title).replace(" ", "_")


def paragraph(row: Row, sentences: str) -> Paragraph:
    """Of a row with a title and, in the field `sentences`, a list of them."""
    written, given = row.text("title"), row.texts(sentences)
    spans = [Span(start, end) for start, end in pairwise(accumulate(map(len, given), initial=0))]
    title = text_of(plain_title(written), row.where, "title")
    return Paragraph(title, re.sub(r"\s", " ", "".join(given)), spans, written)


def passages(path: Path) -> Iterator[GivenPassage]:
    """Pages, a JSON object per line with `title` and the sentences `text`: the official archive of the introductory
    paragraphs (read as it is, bzip2 files in a bzip2 archive), or one such file. Pages without any sentence stay."""
    for row in rows(path):
        page = paragraph(row, "text")
        yield row.where, page.id, page.title, page.text, page.sentences


def questions(path: Path) -> Iterator[GivenQuestion]:
    """Items of an official file for training or development, in either setting, one at a time.

    Positives are the supporting paragraphs in the order of the hops, their gold evidence the supporting sentences;
    the other paragraphs are hard negatives.
    """
    for row in rows(path):
        question, answer = row.text("question"), row.text("answer", empty=True)
        kind = "yes-no" if answer in ("yes", "no") else "string"
        question_type = row.text("type") if "type" in row.fields else None
        given = [paragraph(pair, "sentences") for pair in _pairs(row, "context", "sentences")]
        named = _facts(row)
        facts: dict[str, list[int]] = {}  # by plain title, in the order of the titles' first mention
        for fact in named:
            facts.setdefault(plain_title(fact.page), []).append(fact.sentence)
        by_title = {found.title: found for found in reversed(given)}
        supporting = [by_title.get(title, Paragraph(title, "", [], None)) for title in facts]
        if question_type != COMPARISON:
            supporting = in_order(question, answer, kind, supporting)
        others = [found for found in given if found not in supporting]
        yield GivenQuestion(
            row.where,
            row.number,
            question,
            [answer],
            kind,
            id=row.id("_id"),
            type=question_type,
            hops=[found.id for found in supporting],
            facts=named,
            contexts=[
                *(_positive(p, n, facts[p.title]) for n, p in enumerate(supporting)),
                *(p.as_context("hard_negative", n) for n, p in enumerate(others)),
            ],
        )


def in_order(question: str, answer: str, kind: str, supporting: list[Paragraph]) -> list[Paragraph]:
    """Two supporting paragraphs with that of the second hop last.

    The second hop is the one that holds the answer. Where both do or none does (as for yes and no), it is the one whose
    title the other one mentions (Xiong et al., 2021); where that does not tell them apart, the one whose title the
    question does not mention, since a question names where to begin. Else the order of the file stays, as it does for
    comparisons, whose paragraphs stand side by side, and for any other number of paragraphs.
    """
    if len(supporting) != 2:
        return supporting
    one, two = supporting
    for one_is_last, two_is_last in (
        (has_answer([answer], one.text, kind), has_answer([answer], two.text, kind)),
        (mentions(two.text, one.title), mentions(one.text, two.title)),
        (mentions(question, two.title), mentions(question, one.title)),
    ):
        if one_is_last != two_is_last:
            return [two, one] if one_is_last else [one, two]
    return supporting


def mentions(text: str, title: str) -> bool:
    """Whether the title, less what stands in brackets at its end, is in the text, word by word."""
    return has_answer([_IN_BRACKETS.sub("", title) or title], text)


def _pairs(item: Row, name: str, second: str) -> list[Row]:
    """The list `name` of pairs, each as a row of a title and what `second` names."""
    found = item.value(name)
    if not isinstance(found, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in found):
        raise ValueError(
            f"{item.where}: {name} is {shown(found)}, expected a list of pairs, each beginning with a title"
        )
    return [
        Row(f"{item.where}: {name}[{i}]", i, {"title": title, second: value}) for i, (title, value) in enumerate(found)
    ]


def _facts(item: Row) -> list[SupportingFact]:
    pairs = _pairs(item, "supporting_facts", "sentence")
    return [SupportingFact(pair.text("title"), pair.whole("sentence", "its number, counted from 0")) for pair in pairs]


def _positive(found: Paragraph, order: int, supporting: list[int]) -> GivenContext:
    """Official files name some sentences that their paragraphs lack; those are counted."""
    known = [i for i in supporting if i < len(found.sentences)]
    missing = 0 if found.written is None else len(supporting) - len(known)
    gold = sorted({found.sentences[i] for i in known})
    return found.as_context("positive", order)._replace(gold=gold, gold_missing=missing)
