"""How much a 1-bit index loses: real passages and questions, vectors of a pretrained encoder, candidates re-ranked.

    python -m benchmarks.one_bit --data DATA --model MODEL --out FOLDER

DATA is that of `benchmarks.rehearsal`, MODEL a folder such as all-MiniLM-L6-v2's. The corpus is the rehearsal's
passages, or with `--sentences` also their sentences and every two neighbours, which makes it seven times as large.
Vectors, searches and matching of answers are the pipeline's. A second run into FOLDER encodes nothing again.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import typer

from benchmarks import data as settings
from benchmarks import rehearsal
from eadpr import tables
from eadpr.machine import Machine
from eadpr.records import Passage
from eadpr.search.config import Encode, Retrieve
from eadpr.search.encode import embed, encode
from eadpr.search.retrieve import find
from eadpr.search.vectors import Vectors
from eadpr.supervision.spans import sentences
from eadpr.text import AnswerMatcher
from eadpr.training.base import make_base
from eadpr.training.config import Base, EncoderSettings
from eadpr.training.encoder import load

ENGLISH_WIKIPEDIA = 21_015_324  # DPR's passages
DEPTH, TOP = 100, 20
CANDIDATES = (128, 200, 500, 1_000)
Asked = tuple[str, list[str]]  # question, answers


def main(
    data: Path = typer.Option(..., help="The folder of the collections."),
    model: Path = typer.Option(..., help="The folder of a pretrained encoder."),
    out: Path = typer.Option(..., help="The folder for records, model and vectors."),
    index: list[str] = typer.Option(["RaBitQ"], help="Strings of faiss.index_factory."),
    search: str = typer.Option("", help="Search settings of FAISS, e.g. nprobe=64."),
    sentences: bool = typer.Option(False, help="Make sentences and pairs of them passages of the corpus too."),
) -> None:
    """Print a row per index and number of candidates: the share of the exact 20 and 100 that it finds, and the share of
    questions with an answer in the first 20, with what exact search has."""
    nq = list(rehearsal._lines(data / "nq-gold" / "nq-gold.jsonl.gz"))
    squad = rehearsal._json_of(data / "squad-open" / "squad-dev.json.gz")
    sets = {name: [(one["question"], one["answers"]) for one in of} for name, of in (("SQuAD", squad), ("NQ", nq))}
    passages = corpus(data, nq, sentences)
    vectors, asked = encoded(passages, model, out, [question for of in sets.values() for question, _ in of])
    exact = found(vectors, asked, index="exact")
    held = answered(passages, sets, exact)
    print(f"{vectors.rows:,} x {vectors.dim}, {len(asked):,} questions; exact: {shown(held)}")
    for one in index:
        for candidates in CANDIDATES:
            rows = found(vectors, asked, index=one, candidates=candidates, search=search)
            recall = [np.mean([np.isin(a[:k], b[:k]).mean() for a, b in zip(exact, rows, strict=True)]) for k in (TOP, DEPTH)]
            print(f"| {one} | {candidates} | {recall[0]:.2%} | {recall[1]:.2%} | {shown(answered(passages, sets, rows))} |", flush=True)
