"""What the benchmarks work on: the generated collection, and settings as in params.yaml."""

import gc
import os
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from eadpr.atlas.generate import Atlas, generate
from eadpr.corpus.prepare import write_generated
from eadpr.runtime.machine import Machine
from eadpr.settings.resolve import fill_in, load
from eadpr.supervision.pairs import Pair

PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"
WORDS = 100  # words of a passage in DPR's corpus


def section(name: str, **changes: Any) -> dict[str, Any]:
    """A shared section of params.yaml, with some keys changed."""
    return fill_in(load(PARAMS))[name] | changes


def threads() -> int:
    """Return the threads of every side."""
    return section("machine")["threads"]


def settle(*, spinning: bool = True) -> None:
    """Settle this process as stages do, before torch is imported; for both sides. `spinning` as in `machine.settle`."""
    from eadpr.runtime import machine
    from eadpr.settings.command import COLLECTED_AFTER

    gc.set_threshold(COLLECTED_AFTER)
    machine.settle(Machine(**section("machine")), spinning=spinning)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")


def atlas(passages: int) -> Atlas:
    return Atlas(**section("atlas", passages=passages))


def pairs(settings: Atlas) -> Iterator[Pair]:
    """Generate questions of one fact, each with the passage that states it and, as gold, the sentence that does."""
    for block in generate(settings):
        passages = {passage.id: passage for passage in block.passages}
        for question, _, contexts in block.questions:
            if len(contexts) == 1:
                yield Pair(question, passages[contexts[0].passage_id], contexts[0].gold)


def long_pairs(settings: Atlas, count: int) -> Iterator[Pair]:
    """Generate pairs with passages of at least WORDS words; the words added are those of the next pair's passage."""
    # Four passages of atlas give at least one pair.
    enough = islice(pairs(settings.model_copy(update={"passages": 4 * count})), count + 1)
    for pair, following in pairwise(enough):
        words = pair.passage.text.split(" ")
        more = following.passage.text.split(" ")[: max(0, WORDS - len(words))]
        passage = pair.passage._replace(text=" ".join([*words, *more]), sentences=None)
        yield pair._replace(passage=passage)


def records(settings: Atlas, folder: Path) -> Path:
    write_generated(generate(settings), out=folder / "records")
    return folder / "records"
