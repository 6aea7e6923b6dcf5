"""Passages of mixed lengths to vectors: passages per second, with random weights."""

from collections.abc import Iterator
from functools import partial
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
GOALS = {"float32": 1.0, "bfloat16": 3.0}
TOLERANCES = {"float32": 1e-3, "bfloat16": 0.2}

Passages = list[tuple[str, str]]  # title, text


def comparisons(size: Size, folder: Path) -> Iterator[Comparison]:
    """Ours in float32 and, where the machine multiplies it, in bfloat16, each beside the peer in float32."""
    for number, model in enumerate(size.models):
        yield from _comparisons(size, model, folder / str(number))


def _comparisons(size: Size, model: Model, folder: Path) -> Iterator[Comparison]:
    from sentence_transformers import SentenceTransformer

    atlas = data.atlas(model.passages)
    settings = EncoderSettings(**data.section("encoder"))
    base = Base(**data.section("base", **model.base))
    make_base(data.records(atlas, folder) / "passages.parquet", folder / "base", base=base, settings=settings)
    passages = mixed(((p.title, p.text) for block in generate(atlas) for p in block.passages), model.passages)
    peer = SentenceTransformer(str(folder_of(folder / "base", "passage")))
    best = fastest(size.batch_sizes, lambda batch: peer.encode(passages[: size.tried], batch_size=batch))
    budget = resolve_auto(Encode(**data.section("encode"))).token_budget
    for precision in ["float32", *["bfloat16"] * machine.multiplies_bfloat16()]:
        hardware = Machine(**data.section("machine", precision=precision))
        encoder = machine.place_model(load(folder / "base", "passage"), hardware, inference=True)
        yield Comparison(
            path=f"passage encoding, {model.name}, {precision}",
            peer=f"sentence-transformers' encode in float32, batches of {best}",
            goal=Goal("speed", GOALS[precision]),
            unit="passages",
            ours=Side(partial(ours, encoder, passages, budget, hardware), units=len(passages)),
            theirs=Side(lambda _: peer.encode(passages, batch_size=best), units=len(passages)),
            same=within(TOLERANCES[precision]),
        )


def mixed(passages, count: int) -> Passages:
    """The first `count`, each cut to a length drawn evenly from WORDS."""
    draw = np.random.default_rng(0)
    return [(title, " ".join(text.split(" ")[: draw.integers(*WORDS)])) for title, text in islice(passages, count)]


def ours(encoder: TextEncoder, passages: Passages, budget: int, hardware: Machine, _: None) -> np.ndarray:
    titles, texts = zip(*passages, strict=True)
    with machine.autocast(hardware, inference=True):
        return embed(encoder, encoder.passage_ids(titles, texts), token_budget=budget)
