"""Near-duplicates by rule. Of the first three the evidence is gone, so that none should be ranked before a positive.

removed    the positive without its evidence, as EADPR trains to tell it apart: the first is the distractor itself, less
           sentences in which an answer is left, the others lack ever more, and other, sentences besides
replaced   the positive with a sentence of like length from elsewhere in the place of its evidence, others in each, as
           long as there are any
reordered  the sentences that are left, in another order in each
swapped    the positive with another question's answer of the same kind in the place of its own, others in each: a
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
    return _drawn(seed, _without_more)


def reordered(seed: int) -> Generate:
    return _drawn(seed, _in_other_orders)


def _drawn(seed: int, texts: Callable[[str, np.random.Generator], Iterable[str]]) -> Generate:
    """`texts` gives all there are, those of number 0 on, of the text without evidence."""

    def generate(original: Original, numbers: range) -> list[Candidate]:
        if not original.text:
            return []
        rng = np.random.default_rng(candidate_seed(seed, original.question.id, 0))
        found = islice(texts(original.text, rng), numbers.start, numbers.stop)
        return [Candidate(original.positive.title, text) for text in found]

    return generate


def _without_more(text: str, rng: np.random.Generator) -> Iterator[str]:
    """Without none of its sentences, without each one, each two, ..."""
    sentences = spans.sentences(text)
    drawn = [sentences[i] for i in rng.permutation(len(sentences))]
    for count in range(len(drawn)):
        yield from (spans.without(text, chosen) for chosen in combinations(drawn, count))


def _in_other_orders(text: str, rng: np.random.Generator) -> Iterator[str]:
    """Each once."""
    sentences = [text[start:end] for start, end in spans.sentences(text)]
    seen = {tuple(range(len(sentences)))}
    while len(seen) < factorial(len(sentences)):
        order = tuple(rng.permutation(len(sentences)).tolist())
        if order not in seen:
            seen.add(order)
            yield " ".join(sentences[i] for i in order)


def replaced(fillers: Fillers) -> Generate:
    """Of fillers that are not drawn, a number takes the first that no number below it has.

    Nothing is made where the whole positive would be replaced, or what is no sentence.
    """

    def generate(original: Original, numbers: range) -> list[Candidate]:
        pair, title = Pair(original.question, original.positive, None), original.positive.title
        taken = forms.as_sentences(original.positive, original.removed)
        if not original.text or taken is None:
            return []
        found: list[Candidate] = []
        had: set[str] = set()
        for number in numbers if fillers.drawn else range(numbers.stop):
            put = forms.choose_fillers(pair, taken, fillers, first=number * len(taken), avoid=had)
            if put is not None and number in numbers:
                found.append(Candidate(title, forms.replace_spans(original.positive.text, taken, put)))
            if not fillers.drawn:
                had.update(put or ())
        return found

    return generate


def swapped(swaps: Swaps) -> Generate:
    def generate(original: Original, numbers: range) -> list[Candidate]:
        found = [_swapped(original, swaps, number) for number in numbers]
        return [Candidate(original.positive.title, text) for text in found if text is not None]

    return generate


def _swapped(original: Original, swaps: Swaps, number: int) -> str | None:
    pair = Pair(original.question, original.positive, None)
    answer = swaps.draw_answer(pair, number) if pair.answer_spans else None
    return None if answer is None else swap_answers(pair, answer)
