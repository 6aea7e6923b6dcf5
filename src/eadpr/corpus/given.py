"""What the readers of all formats hand on: questions and passages as the source gives them, and where they stand."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from eadpr.records import Passage, Span

ROLES = ("positive", "negative", "hard_negative")
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs, which UTF-8 cannot hold


class GivenPassage(NamedTuple):
    """`where` names file and line or row, for messages."""

    where: str
    passage: Passage


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
    if bad := _UNUSABLE.search(value):
        raise ValueError(
            f"{where}: {field} holds U+{ord(bad.group()):04X} at character {bad.start()}, which is not text; remove it"
        )
    if not empty and not value.strip():
        raise ValueError(f"{where}: {field} is empty; fill it or remove the row")
    return value


def id_of(value: object, where: str, field: str = "id") -> str:
    """An id: text without white space, because rankings are exported as TREC runs; whole numbers are written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    found = text_of(value, where, field)
    if re.search(r"\s", found):
        raise ValueError(f"{where}: {field} {shown(found)} holds white space; ids must be one word")
    return found


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
