"""The small collection of tests.training_toy with rankings, for readers: answers are in the passage ranked second."""

from pathlib import Path

from eadpr.readers.config import Read, Reader
from eadpr.readers.train import train_reader
from eadpr.runtime.model_folders import NO_FILES, ModelFiles
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Fold, Positive, SetMember
from tests.toy_records import write_ranking
from tests.training_toy import MACHINE, NAMES, write_all

READER = Reader.model_validate({
    "kind": "extractive", "model": None, "revision": None, "tokens": 64, "question_tokens": 12, "lowercase": True,
    "seed": 3, "epochs": 40, "steps": None, "batch_size": 5, "depth": 4, "passages": 3, "support": 1.0,
    "learning_rate": 5e-3,
    "warmup_steps": None, "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_eps": 1e-8, "weight_decay": 0.0,
    "max_grad_norm": 2.0, "dropout": 0.0, "attention_dropout": 0.0,
})  # fmt: skip
READ = Read(top_k=[1, 2, 4], paths=3, answer_tokens=6, path_answer_tokens=9, output_tokens=8)
SETS = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=[])


PARTS = {"train": "train", "evaluate": "dev"}  # of a ranking, and the split they are of


def ranked(i: int) -> list[str]:
    """The passage without the answer, the one with it, two of another name."""
    neighbour = (i + 1) % len(NAMES)
    return [f"n{i}", f"p{i}", f"n{neighbour}", f"p{neighbour}"]


def train(
    toy: Path, out: Path, settings: Reader, *, init: str = "base", model_files: ModelFiles = NO_FILES, **changes
) -> int:
    """Into `out/reader` and `out/log`."""
    folders = {name: toy / name for name in ("records", "positives", "ranking")} | {"init": toy / init}
    reader_settings = Reader.model_validate(settings.model_dump() | changes)
    return train_reader(reader_settings, model_files, MACHINE, **folders, out=out / "reader", log=out / "log")


def write_reading(folder: Path) -> Path:
    """Write what `write_all` writes, and `records/question_sets.parquet`, `positives/` and `ranking/`. Every fourth
    question is evaluated, the others are trained on."""
    write_all(folder)
    numbers = range(len(NAMES))
    splits = ["dev" if i % 4 == 3 else "train" for i in numbers]
    members = [SetMember("toy", splits[i], f"q{i}") for i in numbers]
    tables.write(folder / "records" / "question_sets.parquet", SetMember, members)
    folds = [Fold(f"q{i}", "train", 0) for i in numbers if splits[i] == "train"]
    tables.write(folder / "positives" / "folds.parquet", Fold, folds)
    positives = [Positive(f"q{i}", f"p{i}", "given", None) for i in numbers]
    tables.write(folder / "positives" / "positives.parquet", Positive, positives)
    parts = {name: {f"q{i}": ranked(i) for i in numbers if splits[i] == split} for name, split in PARTS.items()}
    write_ranking(folder / "ranking", **parts)
    return folder
