"""Near-duplicates by rule. Of the first three the evidence is gone, so that none should be ranked before a positive.

removed    the positive without its evidence, as EADPR trains to tell it apart: the first is the distractor itself, less
           sentences in which an answer is left, the others lack ever more, and other, sentences too
replaced   the positive with its evidence replaced by sentences of like length from elsewhere, others in each, as
           long as there are any
reordered  the sentences that are left, in another order in each
swapped    the positive with its answer replaced by another question's of the same kind, others in each: a
           probe, since it states the relation, wrongly
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice
from math import factorial

import numpy as np

from eadpr.supervision import forms, spans
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.supervision.swaps import Swaps, swap_answers
from eadpr.writers.original import Candidate, Generate, Original, candidate_seed


def removed(seed: int) -> Generate:
    return _from_texts(seed, _without_more)


def reordered(seed: int) -> Generate:
    return _from_texts(seed, _in_other_orders)


def _from_texts(seed: int, texts: Callable[[str, np.random.Generator], Iterable[str]]) -> Generate:
    """Return a generator; `texts` yields all texts, from number 0 on, made of the text without evidence."""

    def generate(original: Original, numbers: range) -> list[Candidate]:
        if not original.text:
            return []
        rng = np.random.default_rng(candidate_seed(seed, original.question.id, 0))
        chosen = islice(texts(original.text, rng), numbers.start, numbers.stop)
        return [Candidate(original.positive.title, text) for text in chosen]

    return generate


def _without_more(text: str, rng: np.random.Generator) -> Iterator[str]:
    """Yield the text whole, then without each sentence, each two, ..."""
    sentences = spans.sentences(text)
    shuffled = [sentences[i] for i in rng.permutation(len(sentences))]
    for count in range(len(shuffled)):
        yield from (spans.without(text, chosen) for chosen in combinations(shuffled, count))


def _in_other_orders(text: str, rng: np.random.Generator) -> Iterator[str]:
    """Yield the sentences in every other order, each order once."""
    sentences = [text[start:end] for start, end in spans.sentences(text)]
    seen = {tuple(range(len(sentences)))}
    while len(seen) < factorial(len(sentences)):
        order = tuple(rng.permutation(len(sentences)).tolist())
        if order not in seen:
            seen.add(order)
            yield " ".join(sentences[i] for i in order)


def replaced(fillers: Fillers) -> Generate:
    """Return a generator; for fillers that are not drawn, a number takes the first that no number below it has.

    It makes nothing if the whole positive would be replaced, or a span that is no sentence.
    """

    def generate(original: Original, numbers: range) -> list[Candidate]:
        pair, title = Pair(original.question, original.positive, None), original.positive.title
        evidence = forms.as_sentences(original.positive, original.removed)
        if not original.text or evidence is None:
            return []
        candidates: list[Candidate] = []
        had: set[str] = set()
        for number in numbers if fillers.drawn else range(numbers.stop):
            chosen = forms.choose_fillers(pair, evidence, fillers, first=number * len(evidence), avoid=had)
            if chosen is not None and number in numbers:
                candidates.append(Candidate(title, forms.replace_spans(original.positive.text, evidence, chosen)))
            if not fillers.drawn:
                had.update(chosen or ())
        return candidates

    return generate


def swapped(swaps: Swaps) -> Generate:
    def generate(original: Original, numbers: range) -> list[Candidate]:
        texts = [_swapped(original, swaps, number) for number in numbers]
        return [Candidate(original.positive.title, text) for text in texts if text is not None]

    return generate


def _swapped(original: Original, swaps: Swaps, number: int) -> str | None:
    pair = Pair(original.question, original.positive, None)
    answer = swaps.draw_answer(pair, number) if pair.answer_spans else None
    return None if answer is None else swap_answers(pair, answer)
