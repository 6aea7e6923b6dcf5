"""Which answers a question can be judged by."""

from __future__ import annotations

import regex

from eadpr import text
from eadpr.corpus.given import GivenQuestion, shown

_FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE


def usable(question: GivenQuestion, *, drop_empty: bool) -> list[str]:
    """The answers, checked.

    An answer without a single token of DPR's tokeniser would be found in every passage: it is an error, or left out
    with `drop_empty`. A pattern that does not compile is an error.
    """
    check = _refuse_pattern if question.answer_kind == "regex" else _refuse_empty
    kept = []
    for i, answer in enumerate(question.answers):
        if drop_empty and empty(answer, question.answer_kind):
            continue
        check(answer, f"{question.where}: answers[{i}]")
        kept.append(answer)
    return kept


def empty(answer: str, kind: str) -> bool:
    return not answer.strip() if kind == "regex" else not text.tokens(answer)


def never_matches(pattern: str) -> bool:
    """Whether a valid pattern stops being one in its NFD form, which is the one that is matched.

    It then matches nothing, as in DPR; CuratedTREC has one, with an accented letter behind a backslash.
    """
    return _problem(text.nfd(pattern)) is not None


def _problem(pattern: str) -> str | None:
    try:
        regex.compile(pattern, _FLAGS)
    except regex.error as error:
        return str(error)
    return None


def _refuse_empty(answer: str, where: str) -> None:
    if empty(answer, "string"):
        raise ValueError(
            f"{where} is {shown(answer)}, which holds no letter, digit or sign and would be found in every passage;"
            " remove it, or set prepare.drop_empty_answers in params.yaml"
        )


def _refuse_pattern(pattern: str, where: str) -> None:
    if empty(pattern, "regex"):
        raise ValueError(f"{where} is an empty pattern, which is found in every passage; remove it")
    if problem := _problem(pattern):
        raise ValueError(f"{where} is {shown(pattern)}, not a valid regular expression: {problem}; mend it")
