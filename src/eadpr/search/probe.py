"""Scores of a question with its positive p+, the distractor p*, the masked passage p' and the placebos p°: what answer
awareness and its controls need.

One pair per question, its first positive, so that questions weigh the same. Everything is float32; stored vectors are
not used.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from eadpr.runtime import jobs, machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search.config import Probe
from eadpr.search.encode import embed
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids
from eadpr.storage.records import PairScore
from eadpr.supervision.pairs import Pair
from eadpr.supervision.probed import first_pairs_with_cuts, mask_answers
from eadpr.training.encoder import TextEncoder, load

PAIRS = 1_024  # scored at a time

Block = list[tuple[Pair, dict[str, str]]]  # pairs with what is left of their passages, by strategy


def probe(
    records: Path, positives: Path, distractors: Path, model: Path, out: Path, *, settings: Probe, sets: Sets
) -> int:
    """Write the `PairScore`s of the questions of `sets.evaluate` that have a positive; returns the number of questions.

    `positives` and `distractors` are tables. A variant that does not exist (no distractor of the strategy, no placebo,
    no answer in the positive, nothing left of it) has no row.
    """
    wanted = read_question_ids(records / "question_sets.parquet", sets.evaluate)
    variants = {"distractor": settings.strategy} | {name: name for name in (*settings.also, *settings.placebos)}
    chosen = first_pairs_with_cuts(records, positives, distractors, [*variants.values()], wanted)
    count = 0

    def blocks() -> Iterator[Block]:
        nonlocal count
        while block := list(islice(chosen, PAIRS)):
            count += len(block)
            yield block

    def encoders() -> list[TextEncoder]:
        return [load(model, side).to(machine.device()) for side in ("question", "passage")]

    def scored(both: list[TextEncoder], block: Block) -> list[PairScore]:
        asked, texts = zip(*block, strict=True)
        removed = {variant: [of.get(strategy) for of in texts] for variant, strategy in variants.items()}
        found = list(scores(asked, removed, *both))
        advance(len(block))
        return found

    with progress("probe", None, "questions") as advance:
        rows = jobs.map_pieces(encoders, lambda both: partial(scored, both), blocks())
        tables.write(out, PairScore, chain.from_iterable(rows))
    return count


def scores(
    block: Sequence[Pair],
    removed: Mapping[str, Sequence[str | None]],
    question_encoder: TextEncoder,
    passage_encoder: TextEncoder,
) -> Iterator[PairScore]:
    """Scores of each pair: positive, then the variants of `removed` (a text per pair) and masked where they exist."""
    asked = question_encoder.question_ids([pair.question.question for pair in block])
    questions_BD = embed(question_encoder, asked, device=machine.device())
    texts = {
        "positive": [pair.passage.text for pair in block],
        **removed,
        "masked": [mask_answers(p.passage.text, p.question.answers, p.question.answer_kind) for p in block],
    }
    titles = [pair.passage.title for pair in block]
    ids = {variant: _tokenised(passage_encoder, titles, of_pairs) for variant, of_pairs in texts.items()}
    forms = [(i, variant, ids[variant][i]) for i in range(len(block)) for variant in ids if i in ids[variant]]
    place: dict[tuple[int, ...], int] = {}  # questions share positives, and what is left of them
    rows = [place.setdefault(tuple(tokens), len(place)) for _, _, tokens in forms]
    passages_FD = embed(passage_encoder, list(place), device=machine.device())[rows]
    asked_FD = questions_BD[[i for i, _, _ in forms]]
    dots = np.einsum("fd,fd->f", passages_FD, asked_FD, dtype=np.float64).tolist()
    for (i, variant, tokens), dot in zip(forms, dots, strict=True):
        cut = variant != "positive" and tokens == ids["positive"][i]
        yield PairScore(block[i].question.id, block[i].passage.id, f"{variant}_cut" if cut else variant, dot)


def _tokenised(encoder: TextEncoder, titles: list[str], texts: Sequence[str | None]) -> dict[int, list[int]]:
    """The tokens of the passages that have a text, by their places."""
    present = [i for i, text in enumerate(texts) if text is not None]
    found = encoder.passage_ids([titles[i] for i in present], [texts[i] for i in present])
    return dict(zip(present, found, strict=True))
