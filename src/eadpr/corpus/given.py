"""What the readers of all formats hand on: questions and passages as the source gives them, where they stand, and which
values their fields may have."""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

import regex

from eadpr import text
from eadpr.records import Span

ROLES = ("positive", "negative", "hard_negative")
_FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs, which UTF-8 cannot hold


def digest(*parts: str) -> int:
    """A 64-bit integer, the same in every process."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


class GivenPassages(NamedTuple):
    """Some passages of a file, column by column; `places` name file and line or row, for messages."""

    places: list[str]
    ids: list[str]
    titles: list[str]
    texts: list[str]
    sentences: list[list[Span] | None]


class GivenContext(NamedTuple):
    """A passage of a question. `title` and `text` are None where the source names the passage by id only, `passage_id`
    where it gives only the text. `fields` is the source's own JSON object, in its order; `gold_missing` counts the
    sentences that the source names as evidence but does not have."""

    role: str
    order: int
    passage_id: str | None
    title: str | None
    text: str | None
    score: float | None = None
    title_score: float | None = None
    gold: list[Span] | None = None  # offsets into `text`
    fields: dict[str, Any] | None = None
    sentences: list[Span] | None = None
    gold_missing: int = 0


class GivenQuestion(NamedTuple):
    """`row` counts the questions of the file from 1; `item` is the source's JSON object, None for formats without one;
    `test_share` is the share of such questions that go to the split `test` instead; `also` are further (set, split);
    `hops` are passage ids."""

    where: str
    row: int
    question: str
    answers: list[str]
    answer_kind: str
    set: str
    split: str
    contexts: list[GivenContext] = []
    id: str | None = None
    type: str | None = None
    subject: str | None = None
    relation: str | None = None
    item: dict[str, Any] | None = None
    test_share: float | None = None
    also: list[tuple[str, str]] = []
    hops: list[str] | None = None


def field_of(item: dict[str, Any], where: str, name: str) -> object:
    if name not in item:
        raise ValueError(f"{where}: field {name!r} is missing (it has {', '.join(item) or 'none'})")
    return item[name]


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


def column_of(values: list, places: list[str], field: str, *, empty: bool = False) -> list[str]:
    """`text_of` of every row, most of which are found sound all at once."""
    try:
        joined = "".join(values)
        joined.encode()  # refuses surrogates
        sound = "\0" not in joined and (empty or all(map(str.strip, values)))
    except (TypeError, UnicodeEncodeError):
        sound = False
    return (
        values
        if sound
        else [text_of(value, where, field, empty=empty) for value, where in zip(values, places, strict=True)]
    )


def id_column_of(values: list, places: list[str]) -> list[str]:
    """`id_of` of every row."""
    try:
        joined = "\n".join(values)
        joined.encode()
        sound = "\0" not in joined and joined.split() == values
    except (TypeError, UnicodeEncodeError):
        sound = False
    return values if sound else [id_of(value, where) for value, where in zip(values, places, strict=True)]


def number_of(value: object, where: str, field: str) -> float | None:
    """A score as a number; some sources write it as text."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{where}: {field} is {shown(value)}, expected a number")
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{where}: {field} is {shown(value)}, expected a number") from None


def texts_of(value: object, where: str, field: str) -> list[str]:
    """A list of strings, as the field `answers`; what may stand in an answer is checked by `questions.checked`."""
    if not isinstance(value, list):
        raise ValueError(f"{where}: {field} is {shown(value)}, expected a list of texts")
    return [text_of(item, where, f"{field}[{i}]", empty=True) for i, item in enumerate(value)]


def shown(value: object) -> str:
    """A value for a message, cut short."""
    found = repr(value)
    return found if len(found) <= 80 else f"{found[:77]}..."


def usable_answers(question: GivenQuestion, *, drop_empty: bool) -> list[str]:
    """The answers that the question can be judged by.

    An answer without a single token of DPR's tokeniser would be found in every passage: it is an error, or left out
    with `drop_empty`. A pattern that does not compile is an error.
    """
    check = _refuse_pattern if question.answer_kind == "regex" else _refuse_empty
    kept = []
    for i, answer in enumerate(question.answers):
        if drop_empty and _empty(answer, question.answer_kind):
            continue
        check(answer, f"{question.where}: answers[{i}]")
        kept.append(answer)
    return kept


def _empty(answer: str, kind: str) -> bool:
    return not answer.strip() if kind == "regex" else not text.tokens(answer)


def never_matches(pattern: str) -> bool:
    """Whether a valid pattern stops being one in its NFD form, which is the one that is matched.

    It then matches nothing, as in DPR; CuratedTREC has one, with an accented letter behind a backslash.
    """
    return _problem(text.nfd(pattern)) is not None


def _problem(pattern: str) -> str | None:
    try:
        regex.compile(pattern, _FLAGS)
    except (regex.error, ValueError, RecursionError) as error:  # the latter two for flags that clash and deep nesting
        return str(error)
    return None


def _refuse_empty(answer: str, where: str) -> None:
    if _empty(answer, "string"):
        raise ValueError(
            f"{where} is {shown(answer)}, which holds no letter, digit or sign and would be found in every passage;"
            " remove it, or set prepare.drop_empty_answers in params.yaml"
        )


def _refuse_pattern(pattern: str, where: str) -> None:
    if _empty(pattern, "regex"):
        raise ValueError(f"{where} is an empty pattern, which is found in every passage; remove it")
    if problem := _problem(pattern):
        raise ValueError(f"{where} is {shown(pattern)}, not a valid regular expression: {problem}; mend it")
