"""What texts close to a positive, without an answer, are made from, the form of a generator, what is wrong with a text,
and who writes: a language model of one kind or the other, or the collection's own files.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from eadpr.storage.records import Passage, Question, Span
from eadpr.supervision import spans
from eadpr.supervision.pairs import Pair
from eadpr.text.answers import has_answer, merge
from eadpr.writers.config import Asked, Writer, filled


class Original(NamedTuple):
    """A question and its positive; `taken` are the spans that tell the answer, the evidence and what else holds one,
    `text` is the positive without them: empty if nothing is left, or if nothing tells what the evidence is."""

    question: Question
    positive: Passage
    taken: list[Span]
    text: str


class Candidate(NamedTuple):
    """`text` is None where it was cut off while it was written."""

    title: str
    text: str | None


# The candidates of the given numbers, which count from 0 within a question; fewer where there are no more. A function
# of settings, original and numbers, so that an interrupted run ends as an undisturbed one.
Generate = Callable[[Original, range], list[Candidate]]


def original(pair: Pair, evidence: Sequence[Span] | None) -> Original:
    """`evidence` is what a distractor lacks, None where there is no distractor. Sentences that hold an answer all the
    same are taken too. A positive that has neither would keep its evidence: nothing is made of it."""
    question, passage = pair.question, pair.passage
    held = [
        sentence
        for sentence in spans.segment(passage, "sentence")
        if has_answer(question.answers, _left(passage.text, sentence, evidence or ()), question.answer_kind)
    ]
    taken = merge([*(evidence or ()), *held], touching=False)  # sentences stay apart
    return Original(question, passage, taken, spans.without(passage.text, taken) if evidence or held else "")


def _left(text: str, sentence: Span, evidence: Sequence[Span]) -> str:
    """Of a sentence, without the evidence."""
    start, end = sentence
    inside = [Span(max(s, start) - start, min(e, end) - start) for s, e in evidence if s < end and start < e]
    return spans.without(text[start:end], inside)


def draw(seed: int, question_id: str, number: int) -> int:
    """A 64-bit integer, the same in every process, to seed the draws of one candidate with."""
    digest = hashlib.sha256(f"{seed}\0{number}\0{question_id}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def plain(text: str) -> str:
    """Texts are the same where only white space differs."""
    return " ".join(text.split())


def unfit(question: Question, positive: Passage, text: str | None) -> str | None:
    """Why a text cannot stand for the positive without its evidence; None if nothing tells.

    cut_off: a part of it alone was written; empty: no letter or digit; positive: the same text; holds_answer.
    """
    if text is None:
        return "cut_off"
    if not any(character.isalnum() for character in text):
        return "empty"
    if plain(text) == plain(positive.text):
        return "positive"
    return "holds_answer" if has_answer(question.answers, text, question.answer_kind) else None


def writer(settings: Writer, seed: int, *, sources: Path, raw: Path) -> Generate:
    """`sources` and `raw` hold the collection's files. Only the modules of who writes are imported."""
    match settings.by:
        case "endpoint":
            return endpoint(settings.settings, seed)
        case "seq2seq":
            from eadpr.writers.seq2seq import seq2seq

            return seq2seq(settings.settings, seed, hardware=settings.machine, files=settings.model_files)
        case "given":
            from eadpr.writers.given import given

            return given(settings.settings, [(file, file.local(sources=sources, raw=raw)) for file in settings.texts])


def endpoint(settings: Asked, seed: int) -> Generate:
    """A request for each candidate."""
    from eadpr.writers.endpoint import AT_ONCE, ask

    def generate(original: Original, numbers: range) -> list[Candidate]:
        title = original.positive.title
        if not original.text:
            return []
        prompt = filled(settings.prompt, question=original.question.question, title=title, text=original.text)
        messages = [{"role": "user", "content": prompt}]
        seeds = [draw(seed, original.question.id, number) % 2**31 for number in numbers]  # what servers take
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda one: ask(settings, messages, seed=one), seeds))
        return [Candidate(title, one.text if one.whole else None) for one in found]

    return generate
