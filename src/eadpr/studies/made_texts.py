"""Generated questions with their passages, for work that is only timed."""

from collections.abc import Iterator
from itertools import islice, pairwise

from eadpr.atlas.generate import Atlas, generate
from eadpr.supervision.pairs import Pair

WORDS = 100  # of a passage, as DPR's


def pairs(settings: Atlas) -> Iterator[Pair]:
    """Questions of one fact with the passage that states it and, as gold, the sentence that does."""
    for block in generate(settings):
        passages = {passage.id: passage for passage in block.passages}
        for question, _, contexts in block.questions:
            if len(contexts) == 1:
                yield Pair(question, passages[contexts[0].passage_id], contexts[0].gold)


def long_pairs(settings: Atlas, count: int) -> Iterator[Pair]:
    """With passages of at least WORDS words; the words that are added are of another passage. Four passages of atlas
    give one pair or more."""
    found = islice(pairs(settings.model_copy(update={"passages": 4 * count})), count + 1)
    for pair, other in pairwise(found):
        words = pair.passage.text.split(" ")
        more = other.passage.text.split(" ")[: max(0, WORDS - len(words))]
        passage = pair.passage._replace(text=" ".join([*words, *more]), sentences=None)
        yield pair._replace(passage=passage)
