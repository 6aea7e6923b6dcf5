"""A question to its answer, or to none, and the passages behind it, as a command shows them."""

import json
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr.asking.answers import Annotators, AnswerSpan, Snippet
from eadpr.asking.candidates import PossibleAnswer, ProposedAnswer, ReadSentence, best_of_each, possible, without_names
from eadpr.asking.finder import Finder, FoundPassage
from eadpr.runtime.machine import Machine
from eadpr.supervision.config import EvidenceSettings
from eadpr.supervision.spans import Segmenter, segment, without

LEAST = 0.4  # score of an answer; below it there is none
KEPT = 4  # answers of a sentence that are compared
WIDTH = 110
NO_ANSWER = "no answer found"
# A passage's escapes are shown and not obeyed: signs for control characters, but for tabs and line breaks.
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
# Of controls and ends of lines those that JSON may hold as they are.
ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


class Reply(NamedTuple):
    """`readings` are the best candidates of the passages found."""

    question: str
    found: list[FoundPassage]
    readings: list[ProposedAnswer | None]

    @property
    def place(self) -> int | None:
        """Of the passage with the best candidate, the first of equals."""
        scored = [(reading.score, reading.share, -i) for i, reading in enumerate(self.readings) if reading]
        return -max(scored)[2] if scored else None

    @property
    def score(self) -> float:
        return 0.0 if self.place is None else self.readings[self.place].score

    @property
    def answer(self) -> str | None:
        return self.readings[self.place].answer if self.score >= LEAST else None


def ask(question: str, **reading: Any) -> Reply:
    """`reading` is what `read` wants."""
    found, proposed = read(question, **reading)
    return Reply(question, found, best_of_each(proposed, len(found)))


def read(
    question: str,
    *,
    top: int,
    segmenter: Segmenter,
    find: Callable[[str, int], list[FoundPassage]],
    similarities: Callable[[Sequence[str], Sequence[Snippet]], np.ndarray],
    answers: Callable[[str, Sequence[Snippet]], list[list[AnswerSpan]]],
) -> tuple[list[FoundPassage], list[PossibleAnswer]]:
    """The passages found, and what in them may be the answer."""
    found = find(question, top)
    passages = [one.passage for one in found]
    places = [(i, span) for i, passage in enumerate(passages) for span in segment(passage, segmenter)]
    if not places:
        return found, []
    snippets = [Snippet(passages[i].title, passages[i].text[span.start : span.end]) for i, span in places]
    rests = [Snippet(passages[i].title, without(passages[i].text, [span])) for i, span in places]
    whole, nameless = similarities([question, without_names(question, passages)], snippets)
    losses = np.array([found[i].score for i, _ in places]) - similarities([question], rests)[0]
    sentences = [
        ReadSentence(*place, own[:KEPT]) for place, own in zip(places, answers(question, snippets), strict=True)
    ]
    return found, possible(question, passages, sentences, np.stack([whole, nameless, losses], axis=1))


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
    return ("\n".join(lines) + "\n").translate(CONTROLS)


def marked(text: str, reading: ProposedAnswer | None) -> str:
    if reading is None:
        return text
    (start, end), (first, last) = reading.span, reading.sentence
    return f"{text[:first]}[[{text[first:start]}*{text[start:end]}*{text[end:last]}]]{text[last:]}"


def json_line(reply: Reply) -> str:
    return json.dumps(as_json(reply), ensure_ascii=False).translate(ESCAPED)


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
