"""Rows of a source's files and the checks of their fields; and the passages and questions that readers make of them."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import regex

from eadpr.storage.records import Span, SupportingFact
from eadpr.text.answers import FLAGS, nfd, tokens

ROLES = ("positive", "negative", "hard_negative")
LARGEST = 3.4e38  # of the numbers that the column of grades holds; that of offsets holds less than 2**31
NAMED = 3  # odd rows of a kind that a report lists
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs, which UTF-8 cannot hold

# Place (file and line or row, for messages), id, title, text and given sentences, as the file has them.
GivenPassage = tuple[str, Any, Any, Any, list[Span] | None]


class RowError(ValueError):
    """A row that cannot be used: its file and line, the field at fault (empty: the whole row), why and what to do."""

    def __init__(self, where: str, field: str, reason: str) -> None:
        super().__init__(f"{where}: {field} {reason}" if field else f"{where}: {reason}")


class OddRows:
    """What is odd about a source, by kind: counted, the first few listed, and left out while it is few. Public sets
    have some such rows each, and belong together as they are.

    `report` has for each kind its `count`, `of` how many, and the `first` messages.
    """

    def __init__(self, share: float) -> None:
        self.report: dict[str, dict[str, Any]] = {}
        self._share = share

    def add(self, kind: str, *errors: RowError, count: int = 1) -> None:
        odd = self.report.setdefault(kind, {"count": 0, "first": []})
        odd["count"] += count
        odd["first"] += map(str, errors[: NAMED - len(odd["first"])])

    def check(self, kind: str, total: int, *, limited: bool = True) -> None:
        """Enter how many there are of a kind in all. Raises ValueError if more are odd than the setting allows."""
        if odd := self.report.get(kind):
            odd["of"] = total
            if limited and odd["count"] > self._share * total:
                more = f"that makes {odd['count']:,} of {total:,} {kind}, more than prepare.odd_rows"
                raise ValueError(f"{odd['first'][0]}; {more} allows, a share of {self._share:g}")


def refuse(error: RowError) -> None:
    raise error


def unexpected(where: str, field: str, value: object, expected: str) -> RowError:
    return RowError(where, field, f"is {excerpt(value)}, expected {expected}")


def excerpt(value: object) -> str:
    """Return a value for a message, cut short and on one line."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:77]}..."


def join_names(names: Iterable[str]) -> str:
    """Return names for a message, on one line."""
    return ", ".join(name if name and name.isprintable() else repr(name) for name in names)


def digest(*parts: str) -> int:
    """Return a 64-bit integer, the same in every process."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


class GivenContext(NamedTuple):
    """A passage of a question. Its role is one of ROLES, or the source's word for another kind of passage.

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


class GivenGold(NamedTuple):
    """Where one of `answers` begins in the text of a positive."""

    place: str
    question: str
    passage_id: str
    answers: list[str]
    start: int


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
    annotations: list[GivenGold] = []


class Row(NamedTuple):
    """A row of a file, or an object within one; `where` names it in messages, `number` counts the rows of a file from 1
    and the objects of a list from 0. The methods return a field's value and raise RowError for a wrong one."""

    where: str
    number: int
    fields: dict[str, Any]

    def value(self, name: str) -> Any:
        if name not in self.fields:
            names = join_names(self.fields) or "none"
            raise RowError(self.where, f"field {name!r}", f"is missing (it has {names}); add or rename it")
        return self.fields[name]

    def text(self, name: str, *, empty: bool = False) -> str:
        return check_text(self.value(name), self.where, name, empty=empty)

    def optional(self, name: str) -> str | None:
        """Return a text that may be empty, None if there is no such field."""
        return self.text(name, empty=True) if name in self.fields else None

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, which may be empty; `usable_answers` checks what may stand in an answer."""
        items = self.value(name)
        if not isinstance(items, list):
            raise unexpected(self.where, name, items, "a list of texts")
        return [check_text(item, self.where, f"{name}[{i}]", empty=True) for i, item in enumerate(items)]

    def id(self, name: str) -> str:
        return check_id(self.value(name), self.where, name)

    def offset(self, name: str) -> int:
        if not is_offset(value := self.value(name)):
            raise unexpected(self.where, name, value, "a whole number from 0")
        return value

    def objects(self, name: str) -> list[Self]:
        """Return the objects of a list, each as a row."""
        items = self.value(name)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise unexpected(self.where, name, items, "a list of JSON objects")
        return [Row(f"{self.where}: {name}[{i}]", i, fields) for i, fields in enumerate(items)]


def is_offset(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def check_text(value: object, where: str, field: str, *, empty: bool = False) -> str:
    """Return a string field, kept as given, never trimmed."""
    if not isinstance(value, str):
        raise unexpected(where, field, value, "text")
    # Most texts are ASCII, which Python knows of a string without reading it.
    if (not value.isascii() or "\0" in value) and (bad := _UNUSABLE.search(value)):
        character = f"U+{ord(bad.group()):04X} at character {bad.start()}"
        raise RowError(where, field, f"holds {character}, which is not text; remove it")
    if not empty and (not value or value.isspace()):
        raise RowError(where, field, "is empty; fill it or remove the row")
    return value


def check_id(value: object, where: str, field: str = "id") -> str:
    """Return an id: text without white space, because rankings are exported as TREC runs; whole numbers become text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    name = check_text(value, where, field)
    if name.split() != [name]:
        raise RowError(where, field, f"{excerpt(name)} holds white space; ids must be one word")
    return name


def check_passages(
    passages: Iterable[GivenPassage], leave_out: Callable[[RowError], None] = refuse
) -> Iterator[GivenPassage]:
    """Yield passages, their ids, titles and texts checked; those with neither title nor text are odd."""
    for where, passage_id, title, text, sentences in passages:
        name = check_id(passage_id, where)
        if (check_text(title, where, "title", empty=True) + check_text(text, where, "text", empty=True)).strip():
            yield where, name, title, text, sentences
        else:
            leave_out(RowError(where, "text", "is empty, as is the title; fill it or remove the row"))


def usable_answers(
    answers: Sequence[str], kind: str, where: str, leave_out: Callable[[RowError], None] = refuse
) -> list[str]:
    """Return the answers that a question can be judged by.

    An answer without a token of DPR's would be found in every passage: it is odd. A broken pattern is an error.
    """
    usable = []
    for i, answer in enumerate(answers):
        field = f"answers[{i}]"
        if not (answer.strip() if kind == "regex" else tokens(answer)):
            reason = "which holds no letter, digit or sign and would be in every passage; remove it"
            leave_out(RowError(where, field, f"is {excerpt(answer)}, {reason}"))
            continue
        if kind == "regex":
            try:
                regex.compile(nfd(answer), FLAGS)  # as it is matched
            except (regex.error, ValueError, RecursionError) as error:  # the latter for clashing flags, deep nesting
                reason = f"is {excerpt(answer)}, not a valid regular expression: {error}"
                raise RowError(where, field, reason) from None
        usable.append(answer)
    return usable
