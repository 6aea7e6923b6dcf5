"""What the readers of all formats share: rows and which values their fields may have, and the passages and questions
that they hand on, as the source gives them."""

import hashlib
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, Self

import regex

from eadpr.corpus.formats import file_rows
from eadpr.storage.records import Span, SupportingFact
from eadpr.text import answers as text

ROLES = ("positive", "negative", "hard_negative")
LARGEST = 3.4e38  # of the numbers that the column of grades holds
CHUNK = 1024  # passages handed on at once
_FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs, which UTF-8 cannot hold

# Place (file and line or row, for messages), id, title, text and given sentences, as the file has them.
GivenPassage = tuple[str, Any, Any, Any, list[Span] | None]


def digest(*parts: str) -> int:
    """A 64-bit integer, the same in every process."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


class GivenPassages(NamedTuple):
    """Some passages of a file, column by column."""

    places: list[str]
    ids: list[str]
    titles: list[str]
    texts: list[str]
    sentences: list[list[Span] | None]


class GivenContext(NamedTuple):
    """A passage of a question. Its role is one of ROLES, or what the source calls a passage that is none of these.

    `text` is None where the source names the passage by id only, `passage_id` where it gives only the text.
    `gold_missing` counts the sentences that the source names as evidence but does not have. `written` is the title as
    the source writes it, None where that is `title`.
    """

    role: str
    order: int
    passage_id: str | None
    title: str = ""
    text: str | None = None
    grade: float | None = None
    gold: list[Span] = []  # offsets into `text`
    gold_missing: int = 0
    sentences: list[Span] | None = None
    written: str | None = None


class GivenQuestion(NamedTuple):
    """`row` counts the questions of the file from 1; `also` are names of further sets (`set/split`); `hops` are passage
    ids. Where set, split or answer kind is None, the settings of the file say it."""

    place: str
    row: int
    question: str
    answers: list[str]
    answer_kind: str | None = None
    set: str | None = None
    split: str | None = None
    also: list[str] = []
    id: str | None = None
    type: str | None = None
    subject: str | None = None
    relation: str | None = None
    hops: list[str] | None = None
    facts: list[SupportingFact] | None = None
    contexts: list[GivenContext] = []


class GivenGold(NamedTuple):
    """Where an answer begins in the text of a positive."""

    place: str
    question: str
    passage_id: str
    answer: str
    start: int


class Row(NamedTuple):
    """A row of a file, or an object within one; `where` names it in messages, `number` counts the rows of a file from 1
    and the objects of a list from 0."""

    where: str
    number: int
    fields: dict[str, Any]

    def value(self, name: str) -> Any:
        """The value of a field that must be there."""
        if name not in self.fields:
            there = file_rows.listed(self.fields) or "none"
            raise ValueError(f"{self.where}: field {name!r} is missing (it has {there}); add or rename it")
        return self.fields[name]

    def text(self, name: str, *, empty: bool = False) -> str:
        return text_of(self.value(name), self.where, name, empty=empty)

    def optional(self, name: str) -> str | None:
        """A text that may be empty, None where there is no such field."""
        return self.text(name, empty=True) if name in self.fields else None

    def texts(self, name: str) -> list[str]:
        return texts_of(self.value(name), self.where, name)

    def id(self, name: str) -> str:
        return id_of(self.value(name), self.where, name)

    def whole(self, name: str, expected: str) -> int:
        """A whole number from 0."""
        found = self.value(name)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise ValueError(f"{self.where}: {name} is {shown(found)}, expected {expected}")
        return found

    def finite(self, name: str) -> float | None:
        """A finite number, which some sources write as text; None where there is none."""
        found = self.fields.get(name)
        if found is None:
            return None
        try:
            if not isinstance(found, bool) and abs(number := float(found)) <= LARGEST:
                return number
        except (TypeError, ValueError, OverflowError):
            pass
        raise ValueError(f"{self.where}: {name} is {shown(found)}, expected a number")

    def objects(self, name: str, expected: str = "a JSON object", needed: tuple[str, ...] = ()) -> list[Self]:
        """The objects of a list, each as a row; raises ValueError for one without a field of `needed`."""
        found = self.value(name)
        if not isinstance(found, list):
            raise ValueError(f"{self.where}: {name} is {shown(found)}, expected a list")
        rows = []
        for i, fields in enumerate(found):
            where = f"{self.where}: {name}[{i}]"
            if not isinstance(fields, dict) or not all(one in fields for one in needed):
                raise ValueError(f"{where} is {shown(fields)}, expected {expected}")
            rows.append(Row(where, i, fields))
        return rows


def rows(path: file_rows.Place) -> Iterator[Row]:
    """The rows of a file of JSON objects."""
    return numbered(file_rows.objects(path))


def numbered(found: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    return (Row(where, number, fields) for number, (where, fields) in enumerate(found, start=1))


def text_of(value: object, where: str, field: str, *, empty: bool = False) -> str:
    """A string field, checked: kept as given, never trimmed."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: {field} is {shown(value)}, expected text")
    # Most texts are ASCII, which Python knows of a string without reading it.
    if (not value.isascii() or "\0" in value) and (bad := _UNUSABLE.search(value)):
        raise ValueError(
            f"{where}: {field} holds U+{ord(bad.group()):04X} at character {bad.start()}, which is not text; remove it"
        )
    if not empty and (not value or value.isspace()):
        raise ValueError(f"{where}: {field} is empty; fill it or remove the row")
    return value


def id_of(value: object, where: str, field: str = "id") -> str:
    """An id: text without white space, because rankings are exported as TREC runs; whole numbers are written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    found = text_of(value, where, field)
    if found.split() != [found]:
        raise ValueError(f"{where}: {field} {shown(found)} holds white space; ids must be one word")
    return found


def in_columns(given: Iterator[GivenPassage], *, empty: bool = False) -> Iterator[GivenPassages]:
    """Passages that are checked by `id_of` and `text_of`, some at a time; `empty` texts may be."""
    while some := list(islice(given, CHUNK)):
        places, ids, titles, texts, sentences = map(list, zip(*some, strict=True))
        if not _sound(ids, titles, texts, empty=empty):
            ids = [id_of(value, where) for value, where in zip(ids, places, strict=True)]
            titles = [text_of(value, where, "title", empty=True) for value, where in zip(titles, places, strict=True)]
            texts = [text_of(value, where, "text", empty=empty) for value, where in zip(texts, places, strict=True)]
        yield GivenPassages(places, ids, titles, texts, sentences)


def _sound(ids: list[Any], titles: list[Any], texts: list[Any], *, empty: bool) -> bool:
    """Whether nothing has to be changed or refused; most chunks are found sound all at once."""
    try:
        joined = "\n".join([*ids, *titles, *texts])
        joined.encode()  # refuses surrogates
    except (TypeError, UnicodeEncodeError):
        return False
    return "\0" not in joined and "\n".join(ids).split() == ids and (empty or all(map(str.strip, texts)))


def texts_of(value: object, where: str, field: str) -> list[str]:
    """A list of strings, as the field `answers`; what may stand in an answer is checked by `usable_answers`."""
    if not isinstance(value, list):
        raise ValueError(f"{where}: {field} is {shown(value)}, expected a list of texts")
    return [text_of(item, where, f"{field}[{i}]", empty=True) for i, item in enumerate(value)]


def shown(value: object) -> str:
    """A value for a message, cut short."""
    found = repr(value)
    return found if len(found) <= 80 else f"{found[:77]}..."


def usable_answers(question: GivenQuestion, kind: str, *, drop_empty: bool) -> list[str]:
    """The answers that the question can be judged by.

    An answer without a single token of DPR's tokeniser would be found in every passage: it is an error, or left out
    with `drop_empty`. A pattern that does not compile is an error.
    """
    kept = []
    for i, answer in enumerate(question.answers):
        if not (answer.strip() if kind == "regex" else text.tokens(answer)):
            if not drop_empty:
                raise ValueError(
                    f"{question.place}: answers[{i}] is {shown(answer)}, which holds no letter, digit or sign and would"
                    " be found in every passage; remove it, or set prepare.drop_empty_answers in params.yaml"
                )
            continue
        if kind == "regex" and (wrong := _not_a_pattern(answer)):
            where = f"{question.place}: answers[{i}]"
            raise ValueError(f"{where} is {shown(answer)}, not a valid regular expression: {wrong}; mend it")
        kept.append(answer)
    return kept


def _not_a_pattern(answer: str) -> str | None:
    """What is wrong with a regular expression."""
    try:
        regex.compile(answer, _FLAGS)
    except (regex.error, ValueError, RecursionError) as error:  # the latter two for flags that clash and deep nesting
        return str(error)
    return None


def never_matches(pattern: str) -> bool:
    """Whether a valid pattern stops being one in its NFD form, which is the one that is matched.

    It then matches nothing, as in DPR; CuratedTREC has one, with an accented letter behind a backslash.
    """
    return _not_a_pattern(text.nfd(pattern)) is not None
