"""Near-duplicates by rule. The evidence is gone, so that none should be ranked before a positive.

removed    the positive without its evidence, as EADPR trains to tell it apart: the first is the distractor itself, less
           sentences in which an answer is left, the others lack ever more, and other, sentences too
replaced   the positive with its evidence replaced by sentences of like length from elsewhere, drawn for each
reordered  the sentences that are left, in another order in each
"""

from collections.abc import Callable, Iterator
from itertools import combinations, count, islice
from math import factorial

import numpy as np

from eadpr.supervision import forms
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.text import spans
from eadpr.writers.original import Candidate, Generate, Original, candidate_seed


def by_rule(rule: Callable[..., Iterator[str]], seed_or_fillers: int | Fillers) -> Generate:
    """Make a generator of a rule, which yields all texts of an original from number 0 on, and its seed or fillers."""

    def generate(original: Original, numbers: range) -> list[Candidate]:
        texts = islice(rule(original, seed_or_fillers), numbers.start, numbers.stop)
        return [Candidate(original.positive.title, text) for text in texts]

    return generate


def removed(original: Original, seed: int) -> Iterator[str]:
    """Yield the text whole, then without each sentence, each two, ..."""
    sentences = spans.sentences(original.text)
    shuffled = [sentences[i] for i in _rng(seed, original).permutation(len(sentences))]
    for size in range(len(shuffled)):
        yield from (spans.without(original.text, chosen) for chosen in combinations(shuffled, size))


def reordered(original: Original, seed: int) -> Iterator[str]:
    """Yield the sentences in every other order, each order once."""
    sentences = [original.text[start:end] for start, end in spans.sentences(original.text)]
    rng, seen = _rng(seed, original), {tuple(range(len(sentences)))}
    while len(seen) < factorial(len(sentences)):
        order = tuple(rng.permutation(len(sentences)).tolist())
        if order not in seen:
            seen.add(order)
            yield " ".join(sentences[i] for i in order)


def _rng(seed: int, original: Original) -> np.random.Generator:
    return np.random.default_rng(candidate_seed(seed, original.question.id, 0))


def replaced(original: Original, fillers: Fillers) -> Iterator[str]:
    """Yield nothing if the whole positive would be replaced, or a span that is no sentence."""
    pair = Pair(original.question, original.positive, None)
    evidence = forms.as_sentences(original.positive, original.removed)
    if not original.text or evidence is None:
        return
    for number in count():
        chosen = forms.choose_fillers(pair, evidence, fillers, first=number * len(evidence))
        if chosen is None:
            return
        yield forms.replace_spans(original.positive.text, evidence, chosen)
