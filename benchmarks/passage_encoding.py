"""Passages of mixed lengths to vectors: passages per second, with random weights."""

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import data
from benchmarks.runner import Comparison, Goal, Side, fastest, within
from eadpr.atlas.generate import generate
from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.search.config import Encode
from eadpr.search.encode import embed, resolve_auto
from eadpr.training.base import make_base
from eadpr.training.config import Base, EncoderSettings
from eadpr.training.encoder import TextEncoder, folder_of, load

MINILM = {"layers": 6, "hidden": 384, "heads": 12, "intermediate": 1536}


class Model(NamedTuple):
    name: str
    base: dict[str, int]  # changes of the section `base`
    passages: int


class Size(NamedTuple):
    models: tuple[Model, ...]
    batch_sizes: tuple[int, ...]
    tried: int  # passages with which the batch size is chosen


FULL = Size(
    models=(Model("the default encoder", {}, 2_000), Model("MiniLM's size", MINILM, 500)),
    batch_sizes=(8, 16, 32, 64),
    tried=100,
)
QUICK = Size(
    models=(Model("tiny", {"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 600}, 20),), batch_sizes=(4,), tried=8
)
WORDS = (5, 106)  # least, and one more than the most; atlas has none longer
TOLERANCE = 1e-3

Passages = list[tuple[str, str]]  # title, text


def comparisons(size: Size, folder: Path) -> list[Comparison]:
    return [_comparison(size, model, folder / str(number)) for number, model in enumerate(size.models)]


def _comparison(size: Size, model: Model, folder: Path) -> Comparison:
    from sentence_transformers import SentenceTransformer

    atlas = data.atlas(model.passages)
    settings = EncoderSettings(**data.section("encoder"))
    base = Base(**data.section("base", **model.base))
    make_base(data.records(atlas, folder) / "passages.parquet", folder / "base", base=base, settings=settings)
    passages = mixed(((p.title, p.text) for block in generate(atlas) for p in block.passages), model.passages)
    encoder = load(folder / "base", "passage")
    peer = SentenceTransformer(str(folder_of(folder / "base", "passage")))
    best = fastest(size.batch_sizes, lambda batch: peer.encode(passages[: size.tried], batch_size=batch))
    return Comparison(
        path=f"passage encoding, {model.name}",
        peer=f"sentence-transformers' encode, batches of {best}",
        goal=Goal("speed", 1.3),
        unit="passages",
        ours=Side(lambda _: ours(encoder, passages), units=len(passages)),
        theirs=Side(lambda _: peer.encode(passages, batch_size=best), units=len(passages)),
        same=within(TOLERANCE),
    )


def mixed(passages, count: int) -> Passages:
    """The first `count`, each cut to a length drawn evenly from WORDS."""
    draw = np.random.default_rng(0)
    return [(title, " ".join(text.split(" ")[: draw.integers(*WORDS)])) for title, text in islice(passages, count)]


def ours(encoder: TextEncoder, passages: Passages) -> np.ndarray:
    titles, texts = zip(*passages, strict=True)
    ids, budget = encoder.passage_ids(titles, texts), resolve_auto(Encode(**data.section("encode"))).token_budget
    with machine.autocast(Machine(**data.section("machine"))):
        return embed(encoder, ids, token_budget=budget)
