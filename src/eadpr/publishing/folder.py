"""A trained arm as one folder for other libraries: sentence-transformers and transformers, and on demand DPR's classes,
FAISS, numpy, Pyserini and ONNX Runtime.

A shared encoder is the folder itself; two encoders have a subfolder each, and sentence-transformers' `Router` chooses
between them.
"""

import shutil
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from eadpr.publishing import parts as optional
from eadpr.runtime import files
from eadpr.runtime.model_folders import SIDES
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.config import ResolvedSettings
from eadpr.training.encoder import Encoders, TextEncoder, load, settings_of
from eadpr.training.self_description import MODEL, SETTINGS

SAMPLE = 2_000  # passages that the separator is tried with


class Published(NamedTuple):
    """The facts about a published folder that its card states.

    `folders` are the subfolders of question and passage encoder, empty for a shared one. `separator` stands between
    title and text in one string. Of `sampled` passages `differing` get other tokens that way: their title is longer
    than half of the encoder's input. `layers` tells whether there are any above the pooled state. `refused` has the
    reason for each part that cannot be written.
    """

    settings: ResolvedSettings
    dim: int
    folders: tuple[str, str]
    separator: str
    sampled: int
    differing: int
    layers: bool
    parts: list[str]
    refused: dict[str, str]


def publish(
    arm: str, collection: Path, out: Path, *, parts: Iterable[str], card: Callable[[Published], str]
) -> Published:
    """Write an arm of the folder data/<collection> to the new folder `out`, whole or not at all.

    Raises FileNotFoundError for an arm that is not trained, ValueError if `out` is not empty, if the model cannot be
    written in that form, and for ids that engines refuse.
    """
    model, passages = collection / "models" / arm, collection / "records" / "passages.parquet"
    check_new(out)
    if (model / "multihop.json").exists():
        raise ValueError(f"{model} is a model of two hops, which no other library knows; publish one of `active`")
    if not (model / SETTINGS).exists():
        raise FileNotFoundError(f"{model} holds no encoders; train the arm first (dvc repro)")
    settings = settings_of(model)
    encoders = Encoders(load(model, "question", settings), load(model, "passage", settings))
    refused = {}
    if reason := optional.find_dpr_obstacle(encoders):
        refused["dpr"] = reason
    parts = sorted(set(parts))
    for part in parts:
        if part in refused:
            raise ValueError(f"--with {part}: {refused[part]}")
    joined = _choose_separator(encoders.passage, passages)
    folders, layers = ("", "") if settings.shared else SIDES, encoders.passage.projection is not None
    facts = Published(settings, encoders.passage.dim, folders, *joined, layers, parts, refused)
    with files.new_folder(out) as folder:
        for side, subfolder in zip(SIDES, folders, strict=True):
            # Files that DVC links must not be written to; their copies may.
            shutil.copytree(model / side, folder / subfolder, copy_function=shutil.copyfile, dirs_exist_ok=True)
        if not settings.shared:
            _write_router(folder)
        if "dpr" in parts:
            optional.write_dpr(encoders, folder / "dpr")
        if "onnx" in parts:
            for subfolder, encoder in dict(zip(folders, encoders, strict=True)).items():
                optional.write_onnx(encoder, folder / subfolder / "onnx" / "model.onnx")
        if "vectors" in parts:
            vectors = Vectors(collection / "vectors" / arm, passages, model)
            optional.write_vectors(vectors, passages, folder / "vectors")
        shutil.copyfile(model / SETTINGS, folder / SETTINGS)  # what our own commands read
        files.write_text(folder / "README.md", card(facts))
    return facts


def check_new(out: Path) -> None:
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ValueError(f"{out} exists and is not empty; delete it, or choose another folder")


def _choose_separator(encoder: TextEncoder, passages: Path) -> tuple[str, int, int]:
    """Return the separator by which one string gets the tokens of a passage, whose title and text may be a pair, the
    number of passages tried, and how many of them get other tokens."""
    if encoder.settings.title != "pair":
        return " ", 0, 0
    token = encoder.tokenizer.sep_token or ""
    rows = islice(tables.rows(passages, Passage), SAMPLE)
    titles, texts = zip(*((row.title.strip(), row.text.strip()) for row in rows), strict=True)
    pairs = encoder.passage_ids(titles, texts)
    separator, differing = "", len(texts) + 1
    for candidate in (token, 2 * token):  # RoBERTa's pairs have two
        strings = [f"{title}{candidate}{text}" if title else text for title, text in zip(titles, texts, strict=True)]
        singles = encoder.passage_ids([""] * len(texts), strings)
        count = sum(single != pair for single, pair in zip(singles, pairs, strict=True))
        if count < differing:
            separator, differing = candidate, count
    if differing > len(texts) / 2:
        raise ValueError(
            f"{passages}: no single text gets the tokens that this tokenizer gives a pair of title and text "
            f"({differing} of {len(texts)} differ), so that no other library would encode a passage as in training"
        )
    return separator, len(texts), differing


def _write_router(folder: Path) -> None:
    """Write sentence-transformers' files for two encoders. Without a route, as by `encode`, it refuses texts."""
    kind = "sentence_transformers.models"
    files.write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": f"{kind}.Router"}])
    types: dict[str, str] = {}
    structure = {}
    for route, side in zip(("query", "document"), SIDES, strict=True):
        modules = {
            f"{side}/{module['path']}".rstrip("/"): module["type"]
            for module in files.read_json(folder / side / "modules.json")
        }
        types |= modules
        structure[route] = list(modules)
    parameters = {"default_route": None, "allow_empty_key": False}
    router = {"types": types, "structure": structure, "parameters": parameters}
    files.write_json(folder / "router_config.json", router)
    shutil.copyfile(folder / SIDES[0] / MODEL, folder / MODEL)
