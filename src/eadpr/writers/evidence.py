"""Evidence that a language model finds: it is shown the numbered spans of a positive and asked which of them tell the
answer.

A reply is numbers or it is none: one that cannot be read is asked for again, with what is wrong, and then given up.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from eadpr.runtime import cache, parallel
from eadpr.storage.records import Span
from eadpr.supervision.evidence import Choose
from eadpr.supervision.pairs import Pair
from eadpr.writers.config import Asked, filled
from eadpr.writers.endpoint import AT_ONCE, ask

TRIES = 2
_NUMBERS = re.compile(r"\d{1,9}(\s*,\s*\d{1,9})*\.?", re.ASCII)


def by_endpoint(asked: Asked) -> Choose:
    return Choose(partial(_chosen, asked), [asked.model_dump(), cache.code(__file__)])


def _chosen(asked: Asked, found: Sequence[tuple[Pair, list[Span]]]) -> Iterator[list[int] | None]:
    return parallel.ahead(lambda one: chosen(asked, *one), found, threads=AT_ONCE)


def chosen(asked: Asked, pair: Pair, spans: Sequence[Span]) -> list[int] | None:
    """Indices of the spans that are evidence; None where no reply could be read."""
    text, question = pair.passage.text, pair.question.question
    shown = "".join(f"\n{number}. {' '.join(text[s.start : s.end].split())}" for number, s in enumerate(spans, start=1))
    prompt = filled(asked.prompt, question=question, answer=pair.target, title=pair.passage.title, spans=shown)
    messages = [{"role": "user", "content": prompt}]
    for _ in range(TRIES):
        reply = ask(asked, messages)
        if not (reply.whole or reply.text):  # there is nothing to go on from
            return None
        numbers = read(reply.text, len(spans)) if reply.whole else "it was cut off"
        if isinstance(numbers, list):
            return [number - 1 for number in numbers]
        again = f"This cannot be used: {numbers}. Reply with numbers from 1 to {len(spans)} alone, or with 0 for none."
        messages = [*messages, {"role": "assistant", "content": reply.text}, {"role": "user", "content": again}]
    return None


def read(reply: str, most: int) -> list[int] | str:
    """The numbers of a reply, sorted, each once, none for 0; or what is wrong with it."""
    if not _NUMBERS.fullmatch(reply):
        return "it is not numbers with commas between them"
    found = sorted({int(number) for number in reply.rstrip(".").split(",")})
    if found == [0]:
        return []
    wrong = [number for number in found if not 0 < number <= most]
    return f"there is no sentence {wrong[0]}" if wrong else found
