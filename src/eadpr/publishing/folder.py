"""A trained arm as one folder for other libraries: sentence-transformers and transformers, and on demand FAISS,
numpy, Pyserini and ONNX Runtime.

A shared encoder is the folder itself; two encoders have a subfolder each, and sentence-transformers' `Router` chooses
between them.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from eadpr.publishing import parts as optional
from eadpr.runtime import files
from eadpr.runtime.model_folders import SIDES
from eadpr.search.vectors import Vectors
from eadpr.training.encoder import Encoders, TextEncoder, load, settings_of
from eadpr.training.self_description import MODEL, SETTINGS


def publish(arm: str, collection: Path, out: Path, *, parts: Iterable[str], card: Callable[[TextEncoder], str]) -> None:
    """Write an arm of the folder data/<collection> to the new folder `out`, whole or not at all.

    Raises FileNotFoundError for an arm that is not trained, ValueError if `out` is not empty or the model cannot be
    written in that form; `card` makes the text of README.md from the encoder of passages.
    """
    model, passages = collection / "models" / arm, collection / "records" / "passages.parquet"
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ValueError(f"{out} exists and is not empty; delete it, or choose another folder")
    settings = settings_of(model)
    if settings.unit != "passage":
        raise ValueError(f"{model} has encoder.unit {settings.unit}, which no published form knows; name another arm")
    encoders = Encoders(load(model, "question", settings), load(model, "passage", settings))
    folders = ("", "") if settings.shared else SIDES
    with files.new_folder(out) as folder:
        for side, subfolder in zip(SIDES, folders, strict=True):
            # Files that DVC links must not be written to; their copies may.
            shutil.copytree(model / side, folder / subfolder, copy_function=shutil.copyfile, dirs_exist_ok=True)
        if not settings.shared:
            _write_router(folder)
        if "onnx" in parts:
            for subfolder, encoder in dict(zip(folders, encoders, strict=True)).items():
                optional.write_onnx(encoder, folder / subfolder / "onnx" / "model.onnx")
        if "vectors" in parts:
            vectors = Vectors(collection / "vectors" / arm, passages, model)
            optional.write_vectors(vectors, passages, folder / "vectors")
        shutil.copyfile(model / SETTINGS, folder / SETTINGS)  # what our own commands read
        files.write_text(folder / "README.md", card(encoders.passage))


def _write_router(folder: Path) -> None:
    """Write sentence-transformers' files for two encoders. Without a route, as by `encode`, it refuses texts."""
    kind = "sentence_transformers.models"
    files.write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": f"{kind}.Router"}])
    types: dict[str, str] = {}
    structure = {}
    for route, side in zip(("query", "document"), SIDES, strict=True):
        modules = files.read_json(folder / side / "modules.json")
        paths = [f"{side}/{module['path']}".rstrip("/") for module in modules]
        types |= zip(paths, [module["type"] for module in modules], strict=True)
        structure[route] = paths
    parameters = {"default_route": None, "allow_empty_key": False}
    router = {"types": types, "structure": structure, "parameters": parameters}
    files.write_json(folder / "router_config.json", router)
    shutil.copyfile(folder / SIDES[0] / MODEL, folder / MODEL)
