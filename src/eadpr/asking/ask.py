"""A question to its answer, the passages behind it and their evidence, as a command shows them."""

import textwrap
from collections.abc import Callable, Sequence
from math import exp
from typing import Any, NamedTuple

from eadpr.asking.evidence import PassageAnswer
from eadpr.asking.finder import FoundPassage
from eadpr.records import Passage
from eadpr.text import answer_spans, exact_match_normal

LOW = 0.5  # an answer or its evidence below it is said to be unsure (ours)
WIDTH = 110


class Answer(NamedTuple):
    """`score` is its probability by `marginal`; without an answer there is no passage."""

    text: str
    score: float
    passage_id: str | None


NO_ANSWER = Answer("", 0.0, None)


class Reply(NamedTuple):
    """`evidence` is that of the answer's passage, 0 without an answer."""

    question: str
    answer: Answer
    evidence: float
    found: list[FoundPassage]
    readings: list[PassageAnswer]

    @property
    def low(self) -> bool:
        """Whether the passages may not hold the answer."""
        return min(self.answer.score, self.evidence) < LOW


def marginal(found: Sequence[FoundPassage], readings: Sequence[PassageAnswer]) -> Answer:
    """The annotator's most probable answer over all passages: the sum of P(passage) P(answer | passage), 0 to 1.

    P(passage) is the softmax of the passages' scores, as in training; P(answer | passage) the likelihood. Equal answers
    (in SQuAD's normal form) add up, and the passage named is the one that adds most. A small annotator reads an answer
    to any question into a passage on something else, so its likelihood alone says little (docs/howto/ask.md).
    """
    parts: dict[str, list[tuple[float, int]]] = {}
    powers = [exp(one.score - max(one.score for one in found)) for one in found]
    for i, share in enumerate(power / sum(powers) for power in powers):
        if readings[i].answer:
            parts.setdefault(exact_match_normal(readings[i].answer), []).append((share * readings[i].likelihood, -i))
    if not parts:
        return NO_ANSWER
    best = max(parts.values(), key=lambda own: (sum(part for part, _ in own), max(own)))
    place = -max(best)[1]
    return Answer(readings[place].answer, sum(part for part, _ in best), found[place].passage.id)


def ask(
    question: str,
    *,
    top: int,
    find: Callable[[str, int], list[FoundPassage]],
    answer: Callable[[str, Sequence[Passage]], list[PassageAnswer]],
) -> Reply:
    found = find(question, top)
    readings = answer(question, [one.passage for one in found])
    best = marginal(found, readings)
    evidence = {one.passage.id: reading.evidence for one, reading in zip(found, readings, strict=True)}
    return Reply(question, best, evidence.get(best.passage_id, 0.0), found, readings)


def shown(reply: Reply) -> str:
    """Plain text: the answer, then the passages, best first, evidence in [[ ]] and the passage's answer in * *."""
    answer = reply.answer
    said = f"{answer.text or 'no answer'}   score {answer.score:.3f}, evidence {reply.evidence:.3f}"
    if reply.low:
        said += "; low: the passages may not hold the answer"
    lines = [reply.question, said]
    for rank, (one, reading) in enumerate(zip(reply.found, reply.readings, strict=True), start=1):
        scores = f"likelihood {reading.likelihood:.3f}, evidence {reading.evidence:.3f}"
        lines.append(
            f"\n{rank}. {one.passage.title or '(no title)'}   {one.passage.id}, score {one.score:.3f};"
            f" {reading.answer or 'no answer'}: {scores}"
        )
        lines.append(textwrap.indent(textwrap.fill(marked(one.passage.text, reading), WIDTH), "   "))
    return "\n".join(lines) + "\n"


def marked(text: str, reading: PassageAnswer) -> str:
    """The text with signs around the evidence and around every place where the answer stands."""
    answers = answer_spans([reading.answer], text) if reading.answer else []
    signs = [(span.start, 3, "*") for span in answers] + [(span.end, 0, "*") for span in answers]
    if reading.span:
        signs += [(reading.span.start, 2, "[["), (reading.span.end, 1, "]]")]
    pieces, position = [], 0
    for place, _, sign in sorted(signs):  # at one place an end comes before a start, and evidence encloses answers
        pieces += [text[position:place], sign]
        position = place
    return "".join([*pieces, text[position:]])


def as_json(reply: Reply) -> dict[str, Any]:
    """The same for a program; offsets of the evidence count characters of `text`."""
    passages = [
        {
            "id": one.passage.id,
            "title": one.passage.title,
            "text": one.passage.text,
            "score": one.score,
            "answer": reading.answer,
            "likelihood": reading.likelihood,
            "evidence": reading.evidence,
            "span": reading.span and reading.span._asdict(),
        }
        for one, reading in zip(reply.found, reply.readings, strict=True)
    ]
    return {
        "question": reply.question,
        "answer": reply.answer._asdict(),
        "evidence": reply.evidence,
        "low": reply.low,
        "passages": passages,
    }
