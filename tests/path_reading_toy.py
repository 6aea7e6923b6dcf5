"""A small collection of two-hop questions with their paths, for the tests of the reader of paths."""

from pathlib import Path

import numpy as np

from eadpr.readers.config import Read
from eadpr.readers.predictions import Prediction, Sentence
from eadpr.storage import tables
from eadpr.storage.records import Context, Fold, Origin, Passage, Positive, Question, Span
from eadpr.two_hops.config import RankedPath
from tests.reading_toy import READER
from tests.small_collection import write_model, write_records

LEARNING = READER.model_copy(update={
    "kind": "paths", "tokens": 48, "question_tokens": 8, "seed": 5, "epochs": 2, "steps": 3, "batch_size": 4,
    "max_grad_norm": 1.0, "dropout": 0.1, "attention_dropout": 0.1,
})  # fmt: skip
READ = Read(top_k=[1, 2], paths=3, answer_tokens=9, path_answer_tokens=4, output_tokens=8)
QUESTIONS = 20
TRAINED = 15  # questions of toy/train, the others are toy/dev


def supported(question_id: str, answer: str, support: list[Sentence]) -> Prediction:
    return Prediction(question_id, 3, answer, support=support)


def halves(text: str) -> list[Span]:
    end = text.index(".") + 1
    return [Span(0, end), Span(end, len(text))]


def write_all(folder: Path) -> Path:
    """The collection as the stages find it: `records/`, `positives/` with q14 held out for validation, `ranking/paths/`
    with those of toy/train and toy/dev apart, and `base/`, encoders to start from.

    Question i asks for the word behind `born` in the second passage of its path; every fifth is a comparison whose
    answer is yes where the first passage begins with w1. Wrong paths begin with `w3x ada`."""
    draw, passages, questions, gold, ranked = np.random.default_rng(2), [], [], [], []
    for i in range(QUESTIONS):
        closed = i % 5 == 4
        answer = ("yes" if i % 2 else "no") if closed else str(draw.choice(["paris", "london", "1912"]))
        first = f"w{1 if answer == 'yes' else 2} w{i} capital . where was w9 ."
        second = f"w7 w8 . w{i} born {draw.choice(['w3', 'w4']) if closed else answer} ."
        passages += [Passage(f"a{i}", f"w{i}", first, halves(first)), Passage(f"b{i}", "", second, halves(second))]
        kind, form = ("comparison", "yes-no") if closed else ("bridge", "string")
        text = f"was w{i} capital" if closed else f"where was w{i} born"
        questions.append(Question(f"q{i}", text, [answer], form, None, None, kind, [f"a{i}", f"b{i}"]))
        gold += [
            Positive(f"q{i}", f"a{i}", "given", [Span(0, first.index("."))]),
            Positive(f"q{i}", f"b{i}", "given", [Span(second.index("born"), second.index("born") + 4)]),
        ]
        wrong_paths = [[f"c{k}", f"b{(i + 2 * k) % 20}"] for k in (1, 2, 3)]
        paths = [[f"a{i}", f"b{i}"], [f"b{i}", f"a{i}"], *wrong_paths]
        ranked += [RankedPath(f"q{i}", rank, path, [0.0, 0.0], 0.0) for rank, path in enumerate(paths, start=1)]
    passages += [Passage(f"c{k}", "", f"w{30 + k} ada . w9", None) for k in (1, 2, 3)]
    records = write_records(folder / "records", passages, questions, TRAINED)
    tables.write(records / "origins.parquet", Origin, [])
    tables.write(records / "contexts.parquet", Context, [])
    tables.write(folder / "positives" / "positives.parquet", Positive, gold)
    folds = [Fold(f"q{i}", "train" if i < TRAINED - 1 else "validation", 0) for i in range(TRAINED)]
    tables.write(folder / "positives" / "folds.parquet", Fold, folds)
    for name, rows in {"train": ranked[: 5 * TRAINED], "evaluate": ranked[5 * TRAINED :]}.items():
        tables.write(folder / "ranking" / "paths" / f"{name}.parquet", RankedPath, rows)
    write_model(folder / "base")
    return folder
