"""Optional parts of a published folder: ONNX, and vectors for FAISS, numpy and Pyserini."""

import logging
import os
import warnings
from importlib.util import find_spec
from pathlib import Path

import faiss
import numpy as np
import torch

from eadpr.search.vectors import DTYPE, Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.encoder import TextEncoder

BLOCK = 65_536  # vectors at a time


def write_onnx(encoder: TextEncoder, path: Path) -> None:
    """Export the encoder: `input_ids` and `attention_mask` (B, T) int64 to `sentence_embedding` (B, D) float32."""
    if not (find_spec("onnx") and find_spec("onnxscript")):
        raise ValueError("--with onnx needs onnx and onnxscript; install requirements/onnx.txt, or 'eadpr[onnx]'")
    path.parent.mkdir(parents=True)
    any_size = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    ids, mask = torch.zeros(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0  # a mask of ones alone would be taken for a constant
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns that torchvision is missing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that the exporter chooses itself
        torch.onnx.export(
            encoder, (ids, mask), path, input_names=["input_ids", "attention_mask"],
            output_names=["sentence_embedding"], dynamic_shapes=(any_size, any_size), external_data=False,
            verbose=False,
        )  # fmt: skip


def write_vectors(vectors: Vectors, passages: Path, folder: Path) -> None:
    """Write `vectors.npy` (P, D) float16, `index`, the same for FAISS by inner product, and `docid`, an id per line.

    Pyserini expects the last two by these names.
    """
    folder.mkdir()
    index = faiss.IndexScalarQuantizer(vectors.dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    matrix = np.lib.format.open_memmap(folder / "vectors.npy", "w+", DTYPE, (vectors.rows, vectors.dim))
    for first, block in vectors.blocks(BLOCK):
        matrix[first : first + len(block)] = block
        index.add(block.astype(np.float32))
    matrix.flush()
    faiss.write_index(index, os.fspath(folder / "index"))
    with (folder / "docid").open("w", encoding="utf-8", newline="\n") as file:
        for batch in tables.batches(passages, Passage, ["id"]):
            file.writelines(f"{passage_id}\n" for passage_id in batch.column("id").to_pylist())
