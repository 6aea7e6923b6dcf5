"""A trained arm as one folder for other libraries: sentence-transformers and, on demand, vectors for numpy.

A shared encoder is the folder itself; two have a subfolder each, and sentence-transformers' `Router` chooses.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eadpr.runtime import files
from eadpr.runtime.model_folders import SIDES
from eadpr.search.vectors import DTYPE, Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.encoder import Encoders, TextEncoder, load, settings_of
from eadpr.training.self_description import MODEL, SETTINGS

LIBRARY = "sentence_transformers"
BLOCK = 65_536  # vectors at a time


def publish(arm: str, collection: Path, out: Path, *, vectors: bool, card: Callable[[TextEncoder], str]) -> None:
    """Write an arm of the folder data/<collection> to the new folder `out`, whole or not at all.

    Raises FileNotFoundError for an arm that is not trained, ValueError if `out` is not empty or the model cannot be
    written in that form; `card` makes the text of README.md from the encoder of passages.
    """
    model, passages = collection / "models" / arm, collection / "records" / "passages.parquet"
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise ValueError(f"{out} exists and is not empty; delete it, or choose another folder")
    settings = settings_of(model)
    by_token = settings.unit == "token"
    if settings.unit == "sentence" or (by_token and (vectors or not settings.shared)):
        reason = f"matches each {settings.unit} (encoder.unit), and encoder.shared is {settings.shared}"
        kinds = "one vector of a passage, or tokens of one encoder (encoder.shared: true) without --vectors"
        raise ValueError(f"{model} {reason}; published can be: {kinds}")
    encoders = Encoders(load(model, "question", settings), load(model, "passage", settings))
    folders = ("", "") if settings.shared else SIDES
    with files.new_folder(out) as folder:
        for side, subfolder in zip(SIDES, folders, strict=True):
            # Files that DVC links must not be written to; their copies may.
            shutil.copytree(model / side, folder / subfolder, copy_function=shutil.copyfile, dirs_exist_ok=True)
        if not settings.shared:
            _write_router(folder)
        if by_token:
            _write_tokens(folder, encoders.passage)
        if vectors:
            _write_vectors(Vectors(collection / "vectors" / arm, passages, model), passages, folder / "vectors")
        shutil.copyfile(model / SETTINGS, folder / SETTINGS)  # what our own commands read
        files.write_text(folder / "README.md", card(encoders.passage))


def _write_vectors(vectors: Vectors, passages: Path, folder: Path) -> None:
    """Write `vectors.npy` (P, D) float16 and `docid`, an id per line."""
    folder.mkdir()
    matrix = np.lib.format.open_memmap(folder / "vectors.npy", "w+", DTYPE, (vectors.rows, vectors.dim))
    for first, block in vectors.blocks(BLOCK):
        matrix[first : first + len(block)] = block
    matrix.flush()
    ids = tables.read(passages, Passage, ["id"]).column("id").to_pylist()
    files.write_text(folder / "docid", "".join(f"{passage_id}\n" for passage_id in ids))


def _write_tokens(folder: Path, encoder: TextEncoder) -> None:
    """Write sentence-transformers' files of a `MultiVectorEncoder` (6.2) over those of pooled vectors.

    It scores as `late_scores` does: unit vectors of the tokens, special ones left out, and the mean of a question's
    highest cosines, its `meanmaxsim`. Its other score, `maxsim`, is the sum.
    """
    shutil.rmtree(folder / "1_Pooling")
    special = encoder.tokenizer.convert_ids_to_tokens(encoder.special.tolist())
    modules = {
        "": ("base.modules.transformer.Transformer", {}),
        "1_Normalize": ("base.modules.normalize.Normalize", {"module_input_name": "token_embeddings"}),
        "2_MultiVectorMask": (
            "multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
            {"skiplist_words": special, "skiplist_tasks": ["query", "document"]},
        ),
    }
    listed = []
    for path, (kind, config) in modules.items():
        listed.append({"idx": len(listed), "name": str(len(listed)), "path": path, "type": f"{LIBRARY}.{kind}"})
        if path:
            files.write_json(folder / path / "config.json", config)
    files.write_json(folder / "modules.json", listed)
    lengths = {"query_length": encoder.settings.question_tokens, "document_length": encoder.settings.passage_tokens}
    kind_of_model = {"model_type": "MultiVectorEncoder", "similarity_fn_name": "meanmaxsim"}
    for name, changes in (("sentence_bert_config.json", lengths), (MODEL, kind_of_model)):
        files.write_json(folder / name, files.read_json(folder / name) | changes)


def _write_router(folder: Path) -> None:
    """Write sentence-transformers' files for two encoders. Without a route, as by `encode`, it refuses texts."""
    files.write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": f"{LIBRARY}.models.Router"}])
    parameters = {"default_route": None, "allow_empty_key": False}
    router: dict[str, Any] = {"types": {}, "structure": {}, "parameters": parameters}
    for route, side in zip(("query", "document"), SIDES, strict=True):
        modules = files.read_json(folder / side / "modules.json")
        paths = [f"{side}/{module['path']}".rstrip("/") for module in modules]
        router["types"] |= zip(paths, [module["type"] for module in modules], strict=True)
        router["structure"][route] = paths
    files.write_json(folder / "router_config.json", router)
    shutil.copyfile(folder / SIDES[0] / MODEL, folder / MODEL)
