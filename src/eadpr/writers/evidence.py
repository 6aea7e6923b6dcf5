"""Evidence by a language model: it gets the numbered spans of a positive and replies which of them tell the answer.

A reply that cannot be read is asked for once more, and then given up.
"""

import re
from collections.abc import Iterator, Sequence

from eadpr.runtime import cache, parallel
from eadpr.storage.records import Span
from eadpr.supervision.evidence import Choose
from eadpr.supervision.pairs import Pair
from eadpr.writers.config import EndpointTask, fill_prompt
from eadpr.writers.endpoint import AT_ONCE, complete

TRIES = 2
_NUMBERS = re.compile(r"\d{1,9}(\s*,\s*\d{1,9})*\.?", re.ASCII)


def by_endpoint(settings: EndpointTask) -> Choose:
    def choose_all(pairs: Sequence[tuple[Pair, list[Span]]]) -> Iterator[list[int] | None]:
        return parallel.ahead(lambda pair: choose_spans(settings, *pair), pairs, threads=AT_ONCE)

    return Choose(choose_all, [settings.model_dump(), cache.code(__file__)])


def choose_spans(settings: EndpointTask, pair: Pair, spans: Sequence[Span]) -> list[int] | None:
    """Return the indices of the spans that are evidence, None if no reply could be read."""
    text, numbered = pair.passage.text, ""
    for number, (start, end) in enumerate(spans, start=1):
        numbered += f"\n{number}. {' '.join(text[start:end].split())}"
    prompt = fill_prompt(
        settings.prompt, question=pair.question.question, answer=pair.target, title=pair.passage.title, spans=numbered
    )
    messages = [{"role": "user", "content": prompt}]
    for _ in range(TRIES):
        reply = complete(settings, messages)
        if reply is None:  # nothing to ask about again
            return None
        numbers = parse_numbers(reply, len(spans))
        if numbers is not None:
            return [number - 1 for number in numbers]
        again = f"This cannot be used. Reply with numbers from 1 to {len(spans)} alone, commas between, or 0 for none."
        messages = [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": again}]
    return None


def parse_numbers(reply: str, most: int) -> list[int] | None:
    """Return the distinct numbers of a reply in order, [] for 0; None if it cannot be read."""
    if not _NUMBERS.fullmatch(reply):
        return None
    numbers = sorted({int(number) for number in reply.rstrip(".").split(",")})
    if numbers == [0]:
        return []
    return numbers if numbers[0] > 0 and numbers[-1] <= most else None
