"""What the atlas can say of an entity, as question and sentences.

Slots of sentences: {X} {x} the subject (capitalised at the start of a sentence), {Xs} {xs} its possessive, {p} {ps}
its pronouns (he, his), {A} the answer, {aA} the answer with its indefinite article. `states` give the fact; `raises`
speak of it without giving it, in the words of the question.
"""

from __future__ import annotations

from typing import NamedTuple


class Relation(NamedTuple):
    """`value` names how its answer is drawn (`facts`); `phrase` is the answer's description in a bridge question,
    `compare` a comparison question, whose answer has the smallest or (`most`) the largest number."""

    question: str
    value: str
    states: tuple[str, ...]
    raises: tuple[str, ...]
    phrase: str | None = None
    compare: str | None = None
    most: bool = False
