"""Whether ranked passages hold an answer: 100 passages of each of many questions, as BM25 ranks them."""

import unicodedata
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import regex

from benchmarks import data
from benchmarks.runner import Comparison, Goal, Side, equal
from eadpr.storage.records import Question
from eadpr.text.answers import AnswerMatcher

_TOKEN = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")


class Size(NamedTuple):
    passages: int
    questions: int


FULL = Size(passages=42_000, questions=2_000)
QUICK = Size(passages=210, questions=10)


def comparisons(size: Size, folder: Path) -> list[Comparison]:
    atlas = data.atlas(size.passages)
    questions = [pair.question for pair in islice(data.pairs(atlas), size.questions)]
    rankings = data.ranked(atlas, questions, folder)
    pairs = sum(map(len, rankings))
    return [
        Comparison(
            path="has_answer",
            peer="the same rules in plain Python, one pass per pair",
            goal=Goal("speed", 20),
            unit="pairs",
            ours=Side(lambda _: ours(questions, rankings), units=pairs),
            theirs=Side(lambda _: plain(questions, rankings), units=pairs),
            same=equal("verdicts"),
        )
    ]


def ours(questions: Sequence[Question], rankings: Sequence[list[str]]) -> list[list[bool]]:
    matcher = AnswerMatcher()
    return [
        matcher.matches(question.answers, texts, question.answer_kind).tolist()
        for question, texts in zip(questions, rankings, strict=True)
    ]


def plain(questions: Sequence[Question], rankings: Sequence[list[str]]) -> list[list[bool]]:
    return [
        [holds(question.answers, text) for text in texts] for question, texts in zip(questions, rankings, strict=True)
    ]


def holds(answers: Sequence[str], text: str) -> bool:
    """The rule for answers of kind string: their tokens stand in the text's side by side."""
    there = tokens(text)
    for answer in answers:
        sought = tokens(answer)
        for i in range(len(there) - len(sought) + 1):
            if there[i : i + len(sought)] == sought:
                return True
    return False


def tokens(text: str) -> list[str]:
    return [match.group().lower() for match in _TOKEN.finditer(unicodedata.normalize("NFD", text))]
