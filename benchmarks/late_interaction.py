"""Late interaction: scores of token vectors against sentence-transformers', and the share of a training step that they
take."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks import data, training
from benchmarks.passage_encoding import MINILM
from benchmarks.runner import Comparison, Goal, Side, within
from eadpr.search.late import score_passage
from eadpr.training import contrastive
from eadpr.training.base import make_base
from eadpr.training.config import Base
from eadpr.training.forward import EncodedBatch


class Size(NamedTuple):
    questions: int
    passages: int
    dim: int
    training: training.Size


FULL = Size(1_000, 100, 384, training.Size(passages=2_100, batch=32, steps=1, base=MINILM))
QUICK = Size(5, 7, 16, training.QUICK._replace(steps=1))
LENGTHS = {"questions": (6, 25), "passages": (40, 200)}  # tokens, least and one more than the most
TOLERANCE = 1e-6


def comparisons(size: Size, folder: Path) -> Iterator[Comparison]:
    from sentence_transformers.util import mean_maxsim

    questions, passages = (texts(size, side) for side in LENGTHS)
    pairs = len(questions) * len(passages)
    yield Comparison(
        path="scores of tokens, encoded before",
        peer="sentence-transformers' mean_maxsim",
        goal=Goal("speed", 0.8),
        unit="pairs",
        ours=Side(lambda _: torch.stack([score_passage(questions, row) for row in passages], 1).numpy(), units=pairs),
        theirs=Side(lambda _: mean_maxsim(questions, passages).numpy(), units=pairs),
        same=within(TOLERANCE),
    )
    yield step_share(size.training, folder)


def texts(size: Size, side: str) -> list[Tensor]:
    """Random unit vectors (T, D) of the tokens of as many texts as `size` says."""
    draw = np.random.default_rng(len(side))
    lengths = draw.integers(*LENGTHS[side], getattr(size, side)).tolist()
    tokens = torch.from_numpy(draw.standard_normal((sum(lengths), size.dim), np.float32))
    return list(normalize(tokens, dim=1).split(lengths))


def step_share(size: training.Size, folder: Path) -> Comparison:
    """The loss of a batch and its gradient for the tokens' vectors, against the whole step but the optimiser's part."""
    records = data.records(data.atlas(size.passages), folder)
    base = Base(**data.section("base", **size.base))
    make_base(records / "passages.parquet", folder / "base", base=base, settings=training.encoder_settings())
    state, settings, batcher = training.started(training.load_setup(size, folder), training.DPR, unit="token")
    batch = batcher().first(range(size.batch))
    encoded = EncodedBatch(state.encoders, batch, settings.machine)

    def score(_: object) -> float:
        loss = contrastive.objective(encoded, batch.masks, settings.loss).total
        torch.autograd.grad(loss, [encoded.questions_QD, encoded.passages_ND])
        return loss.item()

    step = partial(contrastive.add_gradient, state.encoders, batch, settings)
    return Comparison(
        path="scores of a batch's tokens and their gradient",
        peer="the training step they are in",
        goal=Goal("time", 0.2),
        unit="questions",
        ours=Side(score, units=size.batch),
        theirs=Side(lambda _: step()[0].item(), units=size.batch),
        same=within(1e-5),
    )
