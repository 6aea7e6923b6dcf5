"""A question to its answer, or to none, and the passages behind it, as a command shows them."""

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr.asking.answers import Annotators, AnswerSpan, Snippet
from eadpr.asking.candidates import ProposedAnswer, ReadSentence, best_of_each
from eadpr.asking.finder import Finder, FoundPassage
from eadpr.machine import Machine
from eadpr.supervision.config import EvidenceSettings
from eadpr.supervision.spans import Segmenter, segment

LEAST = 0.4  # score of an answer; below it there is none (chosen with the constants of `candidates`)
KEPT = 4  # answers of a sentence that are compared
WIDTH = 110
NO_ANSWER = "no answer found"


class Reply(NamedTuple):
    """`readings` are the best candidates of the passages found."""

    question: str
    found: list[FoundPassage]
    readings: list[ProposedAnswer | None]

    @property
    def place(self) -> int | None:
        """Of the passage with the best candidate, the first of equals."""
        scored = [(reading.score, -i) for i, reading in enumerate(self.readings) if reading]
        return -max(scored)[1] if scored else None

    @property
    def score(self) -> float:
        return 0.0 if self.place is None else self.readings[self.place].score

    @property
    def answer(self) -> str | None:
        return self.readings[self.place].answer if self.score >= LEAST else None


def ask(
    question: str,
    *,
    top: int,
    segmenter: Segmenter,
    find: Callable[[str, int], list[FoundPassage]],
    similarities: Callable[[str, Sequence[Snippet]], np.ndarray],
    answers: Callable[[str, Sequence[Snippet]], list[list[AnswerSpan]]],
) -> Reply:
    found = find(question, top)
    places = [(i, span) for i, one in enumerate(found) for span in segment(one.passage, segmenter)]
    snippets = [Snippet(found[i].passage.title, found[i].passage.text[span.start : span.end]) for i, span in places]
    if not snippets:
        return Reply(question, found, [None for _ in found])
    likely = answers(question, snippets)
    alike = similarities(question, snippets).tolist()
    sentences = [
        ReadSentence(*place, *rest) for place, *rest in zip(places, alike, (own[:KEPT] for own in likely), strict=True)
    ]
    return Reply(question, found, best_of_each(question, [one.passage for one in found], sentences))


def loaded(
    made: Path, arms: Sequence[str], settings: EvidenceSettings, hardware: Machine
) -> dict[str, Callable[..., Reply]]:
    """`ask` by each arm and the annotator of a collection, which lie in the folder `made`; wants question and `top`."""
    records = made / "records"
    read = Annotators(made / "annotator", settings.input_tokens, hardware, questions=records / "questions.parquet")
    found = {arm: Finder(records, made / "models" / arm, made / "vectors" / arm) for arm in arms}
    return {
        arm: partial(ask, segmenter=settings.segmenter, find=find, similarities=find.similarities, answers=read)
        for arm, find in found.items()
    }


def shown(reply: Reply) -> str:
    """Plain text: the answer, then the passages, best first, with the best candidate of each in * * and the sentence it
    stands in, its evidence, in [[ ]]."""
    lines = [reply.question, f"{reply.answer or NO_ANSWER}   score {reply.score:.3f}"]
    for rank, (one, reading) in enumerate(zip(reply.found, reply.readings, strict=True), start=1):
        said = f"{reading.answer}: {reading.score:.3f}" if reading else "nothing"
        title = one.passage.title or "(no title)"
        lines.append(f"\n{rank}. {title}   {one.passage.id}, similarity {one.score:.3f}; {said}")
        lines.append(textwrap.indent(textwrap.fill(marked(one.passage.text, reading), WIDTH), "   "))
    return "\n".join(lines) + "\n"


def marked(text: str, reading: ProposedAnswer | None) -> str:
    if reading is None:
        return text
    (start, end), (first, last) = reading.span, reading.sentence
    return f"{text[:first]}[[{text[first:start]}*{text[start:end]}*{text[end:last]}]]{text[last:]}"


def as_json(reply: Reply) -> dict[str, Any]:
    """The same for a program; offsets count characters of `text`."""
    passages = [
        {
            "id": one.passage.id,
            "title": one.passage.title,
            "text": one.passage.text,
            "similarity": one.score,
            "answer": reading and reading.answer,
            "score": reading.score if reading else 0.0,
            "span": reading and reading.span._asdict(),
            "evidence": reading and reading.sentence._asdict(),
        }
        for one, reading in zip(reply.found, reply.readings, strict=True)
    ]
    passage_id = reply.found[reply.place].passage.id if reply.answer else None
    return {
        "question": reply.question,
        "answer": reply.answer,
        "score": reply.score,
        "passage_id": passage_id,
        "passages": passages,
    }
