"""Swap a question's answer for another question's: the passage still reads well, and states something wrong.

The new answer is of the same kind: it answers a question of the same relation or, if the source names none, one with
the same first wh-word; it has a digit if the old one has, or else a capital letter if the last word of the old one has.
It is drawn from those nearest in number of words, at most twice as many and at least half. Questions to learn from take
answers from each other only, and so do all others.
"""

import re
from collections import defaultdict
from pathlib import Path

from eadpr.storage import engine, tables
from eadpr.storage.records import Fold, Question, Span
from eadpr.supervision.draws import ByLength, draw, similar
from eadpr.supervision.pairs import Pair
from eadpr.text.answers import has_answer
from eadpr.text.question_types import OTHER, question_type
from eadpr.text.spans import segment

DRAWN = 1000  # questions of a kind that give answers
_WORDS = "(the|an?|in|on|at|by|for|from|to|of|with|during|since|after|before)"
_FIRST = re.compile(rf"\A{_WORDS}\b", re.IGNORECASE)
_LAST = re.compile(rf"\b{_WORDS}(\s+)\Z", re.IGNORECASE)
_ARTICLES = {"the", "a", "an"}


class Swaps:
    """The answers of all questions by kind; `folds` is the table of the questions to learn from."""

    def __init__(self, seed: int, *, records: Path, folds: Path) -> None:
        self._seed = seed
        answers: defaultdict[tuple[bool, str], list[str]] = defaultdict(list)
        with engine.connect() as connection:
            engine.view(connection, "questions", records / "questions.parquet", Question)
            engine.view(connection, "folds", folds, Fold)
            connection.create_function("kind", kind, ["VARCHAR"] * 3, "VARCHAR")
            for batch in engine.batches(connection, _ANSWERS, {"seed": seed, "most": DRAWN}):
                for learnt, shared_kind, answer in zip(*batch.to_pydict().values(), strict=True):
                    answers[learnt, shared_kind].append(answer)
        self._learnt = frozenset(tables.read(folds, Fold, ["question_id"])["question_id"].to_pylist())
        self._answers = {key: ByLength(texts, count_words) for key, texts in answers.items()}

    def draw_answer(self, pair: Pair, number: int) -> str | None:
        """Return a wrong answer of the same kind that is not in the passage, or None. A yes or no and a pattern have no
        other answer. Another number draws another answer, or the same by chance."""
        question, text = pair.question, pair.passage.text
        if not question.answers or question.answer_kind != "string":
            return None
        answer = question.answers[0]
        key = (question.id in self._learnt, kind(question.question, question.relation, answer))
        if key not in self._answers:
            return None
        length = count_words(answer)
        for candidate in self._answers[key].nearest(length, draw(self._seed, pair, number)):
            right = has_answer([candidate], text) or has_answer(question.answers, candidate)
            if not right and similar(count_words(candidate), length):
                return candidate
        return None


def kind(question: str, relation: str | None, answer: str) -> str:
    """Return the kind that swapped answers must share. It is empty for a question that takes no part: without relation
    and wh-word, or without a letter or digit in its answer."""
    if not any(character.isalnum() for character in answer):
        return ""
    if relation:
        return f"relation {relation}"
    wh_word = question_type(question)
    if wh_word == OTHER:
        return ""
    if any(character.isdigit() for character in answer):
        return f"{wh_word} number"
    return f"{wh_word} {'name' if answer.split()[-1][0].isupper() else 'words'}"


def count_words(answer: str) -> int:
    return len(answer.split())


_ANSWERS = """
SELECT learnt, kind, answer FROM (
    SELECT id IN (SELECT question_id FROM folds) AS learnt, answers[1] AS answer,
        kind(question, coalesce(relation, ''), answers[1]) AS kind, sha256($seed || chr(0) || id) AS drawn
    FROM questions WHERE answer_kind = 'string' AND len(answers) > 0
) WHERE kind <> '' QUALIFY row_number() OVER (PARTITION BY learnt, kind ORDER BY drawn) <= $most ORDER BY drawn
"""


def swap_answers(pair: Pair, answer: str) -> str:
    """Return the passage's text with every answer replaced by `answer`.

    It gets a capital letter at the start of a sentence; where a small letter stood, a first word that is an article or
    preposition gets a small one. This first word is left out if it would repeat the word in front, or be a second
    article, unless the old answer did so too. An indefinite article in front is made to fit; a lone capital A is an
    article at the start of a sentence only, and else a name, as in "plan A".
    """
    text, parts, position = pair.passage.text, [], 0
    starts = [sentence.start for sentence in segment(pair.passage)]
    for place in pair.answer_spans:
        new, old, front = answer, text[place.start : place.end], text[position : place.start]
        word = _LAST.search(front)
        if word and word[1] == "A" and not _opens_sentence(text, position + word.start(), starts):
            word = None
        if word and not _opens_sentence(text, place.start, starts) and _without_repetition(word[1], old) == old:
            new = _without_repetition(word[1], answer)
        new = _match_case(new, text, place, starts)
        if word and word[1] in ("A", "An", "a", "an"):
            article = word[1][0] + ("n" if new[0].lower() in "aeiou" else "")
            front = front[: word.start()] + article + word[2]
        parts += [front, new]
        position = place.end
    return "".join([*parts, text[position:]])


def _without_repetition(word: str, answer: str) -> str:
    """Return the answer to put behind `word`: without its first word if that repeats it, or if both are articles."""
    first, *rest = answer.split(maxsplit=1)
    both = {word.lower(), first.lower()}
    return rest[0] if rest and (len(both) == 1 or both <= _ARTICLES) else answer


def _opens_sentence(text: str, place: int, starts: list[int]) -> bool:
    """Return true if only marks stand between the start of a sentence and `place`."""
    start = max((start for start in starts if start <= place), default=0)
    return not any(character.isalnum() for character in text[start:place])


def _match_case(answer: str, text: str, place: Span, starts: list[int]) -> str:
    if _opens_sentence(text, place.start, starts):
        return answer[0].upper() + answer[1:]
    if text[place.start].islower():
        return _FIRST.sub(lambda word: word[0].lower(), answer)
    return answer
