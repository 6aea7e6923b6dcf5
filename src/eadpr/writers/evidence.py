"""Evidence by a language model behind an address: it reads a question and numbered sentences, and names one."""

import re
import sys
from collections.abc import Sequence

from eadpr.supervision.pairs import Pair
from eadpr.text import spans
from eadpr.writers.config import Endpoint, fill_prompt
from eadpr.writers.endpoint import complete_all
from eadpr.writers.original import squash_spaces

PROMPT = """Which of the numbered sentences answers the question? They are those of the passage "{title}", in order.
Reply with the number of one sentence and nothing else, or with 0 if none answers.

Question: {question}

{sentences}"""
_NUMBER = re.compile(r"\D*(\d{1,6})\D*")


def choose_sentences(settings: Endpoint, pairs: Sequence[Pair]) -> list[list[int]]:
    """Return a list for each pair with the index of the sentence that the model names, or empty; print why some are."""
    sentences = [[pair.passage.text[start:end] for start, end in spans.segment(pair.passage)] for pair in pairs]
    replies = complete_all(settings, map(make_prompt, pairs, sentences), seed=0)
    chosen = [read_reply(reply or "", len(texts)) for reply, texts in zip(replies, sentences, strict=True)]
    if unnamed := chosen.count([]):
        reasons = f"{replies.count(None):,} refused or cut off, else no number of a sentence"
        print(f"evidence: none was named of {unnamed:,} of {len(pairs):,} positives ({reasons})", file=sys.stderr)
    return chosen


def make_prompt(pair: Pair, sentences: Sequence[str]) -> str:
    numbered = "\n".join(f"{number}. {squash_spaces(text)}" for number, text in enumerate(sentences, 1))
    return fill_prompt(PROMPT, title=pair.passage.title, question=pair.question.question, sentences=numbered)


def read_reply(reply: str, count: int) -> list[int]:
    """Return the index of the one sentence of `count` whose number the reply has; it may have no other number."""
    number = _NUMBER.fullmatch(reply)
    return [int(number[1]) - 1] if number and 1 <= int(number[1]) <= count else []
