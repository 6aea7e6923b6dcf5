"""Another question's answer in the place of a question's own: the passage still reads well, and states what is wrong.

The other answer is of the same kind: one to a question of the same relation; where the source gives none, to one with
the same first wh-word, with a digit where the own answer has one, or else with a capital letter where its last word has
one. Of these it is one of those nearest in their number of words, of at most twice as many and at least half. Questions
that are learnt from take answers from each other alone, and so do the others.
"""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from eadpr.storage import engine
from eadpr.storage.passages import hashed
from eadpr.storage.records import Fold, Question, Span
from eadpr.supervision.draws import ByLength, alike, draw
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import segment
from eadpr.text.answers import has_answer
from eadpr.text.question_types import OTHER, question_type

DRAWN = 1000  # questions of a kind whose answers are taken
_WORDS = "(the|an?|in|on|at|by|for|from|to|of|with|during|since|after|before)"
_FIRST = re.compile(rf"\A{_WORDS}\b", re.IGNORECASE)
_LAST = re.compile(rf"\b{_WORDS}(\s+)\Z", re.IGNORECASE)
_ARTICLES = {"the", "a", "an"}


class Swaps:
    """The answers that questions lend each other; `folds` is the table of those learnt from."""

    def __init__(self, seed: int, *, records: Path, folds: Path) -> None:
        self._seed = seed
        answers: defaultdict[tuple[bool, str], list[str]] = defaultdict(list)
        with engine.connect() as connection:
            engine.view(connection, "questions", records / "questions.parquet", Question)
            engine.view(connection, "folds", folds, Fold)
            connection.create_function("kind", _kinds, ["VARCHAR"] * 3, "VARCHAR", type="arrow")
            for batch in engine.batches(connection, _ANSWERS, {"seed": seed, "most": DRAWN}):
                for learnt, kind, answer in zip(*batch.to_pydict().values(), strict=True):
                    answers[learnt, kind].append(answer)
            learnt = engine.batches(connection, "SELECT question_id FROM folds")
            self._learnt = np.sort(np.concatenate([_NONE, *(hashed(batch[0].to_pylist()) for batch in learnt)]))
        self._answers = {key: ByLength(found, words) for key, found in answers.items()}

    def answer(self, pair: Pair, number: int) -> str | None:
        """An answer of the kind of the question's that is none of its own and does not stand in the passage; None where
        there is none, as for a yes or no and for patterns. Another number draws another one, or the same by chance.
        """
        question, text = pair.question, pair.passage.text
        if not question.answers or question.answer_kind != "string":
            return None
        own = question.answers[0]
        found = self._answers.get((self._is_learnt(question.id), kind(question.question, question.relation, own)))
        for other in found.near(words(own), draw(self._seed, pair, number)) if found else ():
            known = has_answer([other], text) or has_answer(question.answers, other)
            if not known and alike(words(other), words(own)):
                return other
        return None

    def _is_learnt(self, question_id: str) -> bool:
        (sought,) = hashed([question_id])
        at = np.searchsorted(self._learnt, sought)
        return bool(at < len(self._learnt) and self._learnt[at] == sought)


_NONE = np.zeros(0, np.uint64)


def kind(question: str, relation: str | None, answer: str) -> str:
    """What answers must share; empty for a question that lends and takes none: it has neither relation nor wh-word, or
    its answer no letter or digit."""
    if not any(character.isalnum() for character in answer):
        return ""
    if relation:
        return f"relation {relation}"
    if (of_question := question_type(question)) == OTHER:
        return ""
    if any(character.isdigit() for character in answer):
        return f"{of_question} number"
    return f"{of_question} {'name' if answer.split()[-1][0].isupper() else 'words'}"


def words(answer: str) -> int:
    return len(answer.split())


def _kinds(questions: pa.Array, relations: pa.Array, answers: pa.Array) -> pa.Array:
    columns = (column.to_pylist() for column in (questions, relations, answers))
    return pa.array([kind(*row) for row in zip(*columns, strict=True)], pa.string())


_ANSWERS = """
SELECT learnt, kind, answer FROM (
    SELECT id IN (SELECT question_id FROM folds) AS learnt, answers[1] AS answer,
        kind(question, coalesce(relation, ''), answers[1]) AS kind, sha256($seed || chr(0) || id) AS drawn
    FROM questions WHERE answer_kind = 'string' AND len(answers) > 0
) WHERE kind <> '' QUALIFY row_number() OVER (PARTITION BY learnt, kind ORDER BY drawn) <= $most ORDER BY drawn
"""


def swapped(pair: Pair, other: str) -> str:
    """The passage's text with `other` in the place of every answer.

    It begins with a capital letter where a sentence does; where a small letter stood, its first word is written small
    if it is an article or a preposition. It loses one that would stand there twice, or behind another article, as it
    did not before. An indefinite article before it is made to fit; a lone capital A is one where a sentence begins, and
    else a name, as in "plan A".
    """
    text, kept, position = pair.passage.text, "", 0
    starts = [sentence.start for sentence in segment(pair.passage, "sentence")]
    for place in pair.held:
        put, own, before = other, text[place.start : place.end], text[position : place.start]
        word = _LAST.search(before)
        if word and word[1] == "A" and not _opens(text, position + word.start(), starts):
            word = None
        if word and not _opens(text, place.start, starts) and _behind(word[1], own) == own:
            put = _behind(word[1], other)
        put = _cased(put, text, place, starts)
        if word and word[1] in ("A", "An", "a", "an"):
            n = "n" if put[0].lower() in "aeiou" else ""
            before = f"{before[: word.start()]}{word[1][0]}{n}{word[2]}"
        kept += before + put
        position = place.end
    return kept + text[position:]


def _behind(word: str, answer: str) -> str:
    """An answer without its first word, where that is this one or both are articles, and more follows."""
    first, *rest = answer.split(maxsplit=1)
    both = {word.lower(), first.lower()}
    return rest[0] if rest and (len(both) == 1 or both <= _ARTICLES) else answer


def _opens(text: str, place: int, starts: list[int]) -> bool:
    """Whether a sentence begins there, but for its marks."""
    begun = max((start for start in starts if start <= place), default=0)
    return not any(character.isalnum() for character in text[begun:place])


def _cased(other: str, text: str, place: Span, starts: list[int]) -> str:
    if _opens(text, place.start, starts):
        return other[0].upper() + other[1:]
    if text[place.start].islower():
        return _FIRST.sub(lambda word: word[0].lower(), other)
    return other
