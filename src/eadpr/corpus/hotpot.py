"""HotpotQA's files (Yang et al., 2018): questions with their paragraphs, and the corpus of introductory paragraphs.

A paragraph is the first of its page, and files name it by the page's title alone. So the title is the passage's id, and
a question finds its passages in whichever corpus has that page. A paragraph is the concatenation of its sentences,
which hold the spaces between them. Titles are read without HTML's entities and every white space as a plain one, since
files differ in both; what stood there is kept with the contexts.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus import file_rows
from eadpr.corpus.given import GivenContext, GivenPassages, GivenQuestion, field_of, id_of, shown, text_of, texts_of
from eadpr.corpus.sources import File
from eadpr.records import Span
from eadpr.text import has_answer

COMPARISON = "comparison"
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)$")  # "Mercury (planet)"


class Paragraph(NamedTuple):
    """`fields` is what the question's `context` holds, as an object; None for a supporting page that is not in it and
    has no text here."""

    title: str
    text: str
    sentences: list[Span]
    fields: dict[str, Any] | None

    @property
    def id(self) -> str:
        return passage_id(self.title)


def plain_title(given: str) -> str:
    return " ".join(unicodedata.normalize("NFC", html.unescape(given)).split())


def passage_id(title: str) -> str:
    return plain_title(title).replace(" ", "_")


def paragraph(title: object, sentences: object, where: str, field: str, place: int | None = None) -> Paragraph:
    """Checked; `field` names the sentences, `place` is that in `context`. `fields` tells how to cut the text again."""
    given_title, given = text_of(title, where, "title"), texts_of(sentences, where, field)
    text, lengths = "".join(given), [len(sentence) for sentence in given]
    spans = [Span(start, end) for start, end in pairwise(accumulate(lengths, initial=0))]
    fields = {"passage_id": "", "title": given_title, "text": text, "sentence_lengths": lengths, "place": place}
    found = Paragraph(text_of(plain_title(given_title), where, "title"), re.sub(r"\s", " ", text), spans, fields)
    fields["passage_id"] = found.id
    return found


def passages(path: Path) -> Iterator[GivenPassages]:
    """Pages, a JSON object per line with `title` and the sentences `text`: the official archive of the introductory
    paragraphs (read as it is, bzip2 files in a bzip2 archive), or one such file. Pages without any sentence stay."""
    for places, pages in file_rows.in_chunks(file_rows.objects(path)):
        found = [
            paragraph(field_of(page, where, "title"), field_of(page, where, "text"), where, "text")
            for where, page in zip(places, pages, strict=True)
        ]
        columns = zip(*((one.id, one.title, one.text, one.sentences) for one in found), strict=True)
        yield GivenPassages(places, *map(list, columns))


def questions(path: Path, file: File) -> Iterator[GivenQuestion]:
    """Items of an official file for training or development, in either setting, one at a time.

    Positives are the supporting paragraphs in the order of the hops, their gold evidence the supporting sentences;
    the other paragraphs are hard negatives.
    """
    for row, (where, item) in enumerate(file_rows.objects(path), start=1):
        question = text_of(field_of(item, where, "question"), where, "question")
        answer = text_of(field_of(item, where, "answer"), where, "answer", empty=True)
        kind = "yes-no" if answer in ("yes", "no") else "string"
        question_type = text_of(item["type"], where, "type") if "type" in item else None
        given = _paragraphs(item, where)
        facts = _facts(item, where)
        by_title = {found.title: found for found in reversed(given)}
        supporting = [by_title.get(title, Paragraph(title, "", [], None)) for title in facts]
        if question_type != COMPARISON:
            supporting = in_order(question, answer, kind, supporting)
        others = [found for found in given if found not in supporting]
        yield GivenQuestion(
            where=where,
            row=row,
            question=question,
            answers=[answer],
            answer_kind=kind,
            set=file.set,
            split=file.split,
            contexts=[
                *(_positive(p, n, facts[p.title]) for n, p in enumerate(supporting)),
                *(_context(p, "hard_negative", n) for n, p in enumerate(others)),
            ],
            id=id_of(field_of(item, where, "_id"), where, "_id"),
            type=question_type,
            item={**item, "context": None},
            hops=[found.id for found in supporting],
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


def _paragraphs(item: dict[str, Any], where: str) -> list[Paragraph]:
    pairs = enumerate(_pairs(item, where, "context"))
    return [paragraph(*pair, f"{where}: context[{place}]", "sentences", place) for place, pair in pairs]


def _facts(item: dict[str, Any], where: str) -> dict[str, list[int]]:
    """Numbers of the supporting sentences by title, in the order of the titles' first mention."""
    found: dict[str, list[int]] = {}
    for i, (title, sentence) in enumerate(_pairs(item, where, "supporting_facts")):
        at = f"{where}: supporting_facts[{i}]"
        if not isinstance(sentence, int) or isinstance(sentence, bool) or sentence < 0:
            raise ValueError(f"{at}: sentence is {shown(sentence)}, expected its number, counted from 0")
        found.setdefault(plain_title(text_of(title, at, "title")), []).append(sentence)
    return found


def _positive(found: Paragraph, order: int, supporting: list[int]) -> GivenContext:
    """Official files name some sentences that their paragraphs lack; those are counted."""
    if found.fields is None:
        return GivenContext("positive", order, found.id, None, None)
    known = [i for i in supporting if i < len(found.sentences)]
    gold = sorted({found.sentences[i] for i in known})
    return _context(found, "positive", order)._replace(gold=gold, gold_missing=len(supporting) - len(known))


def _context(found: Paragraph, role: str, order: int) -> GivenContext:
    return GivenContext(role, order, found.id, found.title, found.text, fields=found.fields, sentences=found.sentences)


def _pairs(item: dict[str, Any], where: str, name: str) -> list[list[Any]]:
    found = field_of(item, where, name)
    if not isinstance(found, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in found):
        raise ValueError(f"{where}: {name} is {shown(found)}, expected a list of pairs, each beginning with a title")
    return found
