"""Folders that are no table of a user's: a kept copy of passages, made anew where it is damaged, and a model folder."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import load_file

from benchmarks.faults import seeds
from benchmarks.faults.plain import Reading
from eadpr.library.scorers import load_encoders
from eadpr.runtime import cache
from eadpr.runtime.files import tree_sha256
from eadpr.storage import passages, tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage
from eadpr.training.base import make_base
from tests.training_toy import AUTO, BASE

ROWS = [Passage(**row, sentences=None) for row in seeds.PASSAGES]


def _files(make: Callable[[Path, Path], Any]) -> dict[str, bytes]:
    """Return what `make` writes into the folder of its second path, of the passages in its first."""
    with TemporaryDirectory() as folder:
        table, out = Path(folder, "passages.parquet"), Path(folder, "out")
        tables.write(table, Passage, ROWS)
        make(table, out)
        return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def _make_copy(table: Path, out: Path) -> None:
    columns = out / "columns"
    columns.mkdir(parents=True)
    passages._copy(table, columns)
    (out / "columns.sha256").write_text(tree_sha256(columns))


def read_copy(folder: Path) -> Reading:
    """The passages, once the files of the kept copy are those of `folder`."""
    table, copies = folder.parent / "passages.parquet", cache.root() / "passages"
    shutil.rmtree(copies, ignore_errors=True)
    tables.write(table, Passage, ROWS)
    PassageStore(table)
    shutil.copytree(folder, next(copies.glob("*/columns")).parent, dirs_exist_ok=True)
    store = PassageStore(table)
    return {"passages": store.passages(store.rows([row.id for row in ROWS]))}


def _make_model(table: Path, out: Path) -> None:
    torch.set_num_threads(1)  # forked processes cannot use the threads of this one
    make_base(table, out / "base", base=BASE, settings=AUTO)
    shutil.move(out / "base" / "passage_encoder", out / "model")
    shutil.rmtree(out / "base")


def read_model(folder: Path) -> Reading:
    torch.set_num_threads(1)
    encoder = load_encoders(str(folder / "model")).passage
    assert encoder.passage_ids(["T"], ["Alpha is here."])
    return {
        "weights": [(name, repr(value.double().sum().item())) for name, value in encoder.model.state_dict().items()]
    }


def plain_model(folder: Path) -> Reading:
    for name in ("config.json", "tokenizer.json"):
        json.loads((folder / "model" / name).read_bytes())
    return _sums(load_file(folder / "model" / "model.safetensors"))


def _sums(weights: Mapping[str, torch.Tensor]) -> Reading:
    return {"weights": [(name, repr(value.double().sum().item())) for name, value in weights.items()]}


COPY, MODEL = _files(_make_copy), _files(_make_model)
