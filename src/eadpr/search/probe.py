"""Scores of a question with positive p+, distractor p*, masked passage p' and placebos p°, for awareness and controls.

One pair per question, its first positive, so that questions weigh the same. No stored vectors are used.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from eadpr.runtime import jobs, machine
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.runtime.section import Sets
from eadpr.search import late
from eadpr.search.config import Probe
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids
from eadpr.storage.records import PairScore
from eadpr.supervision.pairs import Pair
from eadpr.supervision.probed import first_pairs_with_cuts, mask_answers
from eadpr.training.encoder import Encoders, load_pair

PAIRS = 1_024  # scored at a time

Block = list[tuple[Pair, dict[str, str]]]  # pairs with their cut passages, by strategy


def probe(
    records: Path, positives: Path, distractors: Path, model: Path, out: Path, *, settings: Probe, sets: Sets,
    hardware: Machine,
) -> int:  # fmt: skip
    """Write the `PairScore`s of the questions of `sets.evaluate` with a positive, and return their number.

    `positives` and `distractors` are tables. A variant that does not exist (no distractor of the strategy, no placebo,
    no answer in the positive, nothing but the answer) has no row.
    """
    ids = read_question_ids(records / "question_sets.parquet", sets.evaluate)
    strategy_of = {"distractor": settings.strategy} | {name: name for name in (*settings.also, *settings.placebos)}
    joined = first_pairs_with_cuts(records, positives, distractors, [*strategy_of.values()], ids)
    pairs = ((pair, texts) for pair, texts in joined if pair.gold or not settings.annotated)
    blocks = iter(lambda: list(islice(pairs, PAIRS)), [])
    sizes: list[int] = []

    def load_encoders() -> Encoders:
        return load_pair(model).place(hardware)

    def score_block(encoders: Encoders, block: Block) -> list[PairScore]:
        cuts = {variant: [texts.get(name) for _, texts in block] for variant, name in strategy_of.items()}
        with machine.autocast(hardware, inference=True):
            rows = list(score_variants([pair for pair, _ in block], cuts, encoders))
        sizes.append(len(block))
        advance(len(block))
        return rows

    with progress("probe", None, "questions") as advance:
        rows = jobs.map_pieces(load_encoders, lambda encoders: partial(score_block, encoders), blocks)
        tables.write(out, PairScore, chain.from_iterable(rows))
    return sum(sizes)


def score_variants(
    pairs: Sequence[Pair], cuts: Mapping[str, Sequence[str | None]], encoders: Encoders
) -> Iterator[PairScore]:
    """Yield each pair's scores: positive, then the variants of `cuts` (a text per pair) and masked if they exist."""
    question_ids = encoders.question.question_ids([pair.question.question for pair in pairs])
    texts = {
        "positive": [pair.passage.text for pair in pairs],
        **cuts,
        "masked": [mask_answers(p.passage.text, p.question.answers, p.question.answer_kind) for p in pairs],
    }
    forms = [(i, variant) for i in range(len(pairs)) for variant in texts if texts[variant][i] is not None]
    titles = [pairs[i].passage.title for i, _ in forms]
    ids = map(tuple, encoders.passage.passage_ids(titles, [texts[variant][i] for i, variant in forms]))
    tokens = dict(zip(forms, ids, strict=True))
    scores = late.score_pairs(encoders, question_ids, [i for i, _ in forms], [*tokens.values()])
    for (i, variant), score in zip(forms, scores.tolist(), strict=True):
        if variant != "positive" and tokens[i, variant] == tokens[i, "positive"]:  # they differ beyond the truncation
            variant += "_cut"
        yield PairScore(pairs[i].question.id, pairs[i].passage.id, variant, score)
