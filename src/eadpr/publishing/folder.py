"""A trained arm as one folder that other libraries load as it is: sentence-transformers and transformers, and where
they are asked for DPR's classes, FAISS, numpy, Pyserini and ONNX Runtime.

A shared encoder is the folder itself; of two encoders each has its subfolder, and sentence-transformers' `Router` says
which one encodes what.
"""

import shutil
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from eadpr.library.awareness import PUBLISHED
from eadpr.publishing import parts as made_parts
from eadpr.runtime import files
from eadpr.runtime.model_folders import SIDES
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.config import EncoderSettings
from eadpr.training.encoder import Encoders, TextEncoder, load, settings_of

READ_PASSAGES = 2_000  # of the collection, to see what one text must be to get the tokens of a pair
MODULES = ("Transformer", "Pooling")  # of sentence-transformers, each side's
SENTENCES = "config_sentence_transformers.json"


class Published(NamedTuple):
    """What the card says of the encoders. `where` is the subfolder of question and passage encoder, empty for a shared
    one. `separator` stands between title and text in one string. Of `read` passages `long` get other tokens so: their
    title is longer than half of what the encoder reads. `refused` says why a part cannot be had."""

    settings: EncoderSettings
    dim: int
    where: tuple[str, str]
    separator: str
    read: int
    long: int
    parts: list[str]
    refused: dict[str, str]


def publish(arm: str, made: Path, out: Path, *, parts: Iterable[str], card: Callable[[Published], str]) -> Published:
    """Write the arm of `made`, data/<collection>, to the new folder `out`, whole or not at all.

    Raises FileNotFoundError for an arm that is not trained, ValueError where `out` holds anything, where the model
    cannot be had in that form, and for ids that engines do not take.
    """
    model, wanted = made / "models" / arm, sorted(set(parts))
    check_new(out)
    if (model / "multihop.json").exists():
        raise ValueError(f"{model} is a model of two hops, which no other library knows; publish one of `active`")
    if not (model / "encoder.json").exists():
        raise FileNotFoundError(f"{model} holds no encoders; train the arm first (dvc repro)")
    settings, passages = settings_of(model), made / "records" / "passages.parquet"
    encoders = Encoders(load(model, "question", settings), load(model, "passage", settings))
    why = made_parts.why_no_dpr(encoders)
    refused = {"dpr": why} if why else {}
    for part in wanted:
        if part in refused:
            raise ValueError(f"--with {part}: {refused[part]}")
    separator, read, long = _separator(encoders.passage, passages)
    where = ("", "") if settings.shared else SIDES
    found = Published(settings, encoders.passage.dim, where, separator, read, long, wanted, refused)
    with files.new_folder(out) as folder:
        for side, at in zip(SIDES, where, strict=True):
            # Files that DVC links may not be written to; a copy of theirs may.
            shutil.copytree(model / side, folder / at, copy_function=shutil.copyfile, dirs_exist_ok=True)
        if not settings.shared:
            _route(folder)
        if "dpr" in wanted:
            made_parts.write_dpr(encoders, folder / "dpr")
        if "onnx" in wanted:
            for at, encoder in dict(zip(where, encoders, strict=True)).items():
                made_parts.write_onnx(encoder, folder / at / "onnx" / "model.onnx")
        if "vectors" in wanted:
            vectors = Vectors(made / "vectors" / arm, passages, model)
            made_parts.write_vectors(vectors, passages, folder / "vectors")
        files.write_json(folder / PUBLISHED, {"join": f"{{title}}{separator}{{text}}"})
        files.write_text(folder / "README.md", card(found))
    return found


def check_new(out: Path) -> None:
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ValueError(f"{out} exists and is not empty; delete it, or choose another folder")


def _separator(encoder: TextEncoder, passages: Path) -> tuple[str, int, int]:
    """What makes one string of title and text with the pair's tokens; passages looked at, and those of them that get
    other ones."""
    token = encoder.tokenizer.sep_token or ""
    rows = islice(tables.rows(passages, Passage), READ_PASSAGES)
    titles, texts = zip(*((row.title.strip(), row.text.strip()) for row in rows), strict=True)
    pairs, best = encoder.passage_ids(titles, texts), ("", len(texts) + 1)
    for separator in (token, 2 * token):  # RoBERTa's pairs have two
        joined = [f"{title}{separator}{text}" if title else text for title, text in zip(titles, texts, strict=True)]
        wrong = sum(
            one != pair for one, pair in zip(encoder.passage_ids([""] * len(texts), joined), pairs, strict=True)
        )
        best = min(best, (separator, wrong), key=lambda found: found[1])
    if best[1] > len(texts) / 2:
        raise ValueError(
            f"{passages}: no single text gets the tokens that this tokenizer gives a pair of title and text "
            f"({best[1]} of {len(texts)} differ), so that no other library would encode a passage as in training"
        )
    return best[0], len(texts), best[1]


def _route(folder: Path) -> None:
    """sentence-transformers' folder of two encoders. Without a route, as by `encode`, it refuses texts."""
    kind = "sentence_transformers.models"
    routes = {"query": SIDES[0], "document": SIDES[1]}
    modules = {side: [side, f"{side}/1_Pooling"] for side in SIDES}
    files.write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": f"{kind}.Router"}])
    files.write_json(
        folder / "router_config.json",
        {
            "types": {name: f"{kind}.{of}" for one in modules.values() for name, of in zip(one, MODULES, strict=True)},
            "structure": {route: modules[side] for route, side in routes.items()},
            "parameters": {"default_route": None, "allow_empty_key": False},
        },
    )
    shutil.copyfile(folder / SIDES[0] / SENTENCES, folder / SENTENCES)
