"""Parts of a published folder on demand: DPR's classes, ONNX, and vectors for FAISS, numpy and Pyserini."""

import logging
import os
import warnings
from importlib.util import find_spec
from pathlib import Path

import faiss
import numpy as np
import torch
from transformers import DPRConfig, DPRContextEncoder, DPRQuestionEncoder

from eadpr.search.vectors import DTYPE, Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.encoder import Encoders, TextEncoder

BLOCK = 65_536  # vectors at a time
LONGEST_ID = 512  # bytes; vector databases take no longer ones as keys


def why_no_dpr(encoders: Encoders) -> str:
    """Why DPR's classes cannot hold the encoders; empty where they can."""
    if (pooling := encoders.passage.settings.pooling) != "cls":
        return f"DPR's classes take the first token's state, the arm has encoder.pooling: {pooling}"
    if (kind := encoders.passage.model.config.model_type) != "bert":
        return f"DPR's classes hold a BERT, the arm is a {kind}"
    return ""


def write_dpr(encoders: Encoders, folder: Path) -> None:
    """`question_encoder` and `ctx_encoder`, models of their own: DPR's weights have other names than BERT's."""
    for encoder, kind, name in zip(
        encoders, (DPRQuestionEncoder, DPRContextEncoder), ("question_encoder", "ctx_encoder"), strict=True
    ):
        of_bert = encoder.model.config.to_dict()
        known = {key: value for key, value in of_bert.items() if key not in ("model_type", "architectures")}
        model = kind(DPRConfig(**known, projection_dim=0))
        (inner,) = (module for module in model.modules() if isinstance(module, type(encoder.model)))
        inner.load_state_dict(encoder.model.state_dict())
        model.save_pretrained(folder / name)
        encoder.tokenizer.save_pretrained(folder / name)


def write_onnx(encoder: TextEncoder, path: Path) -> None:
    """`input_ids` and `attention_mask`, (B, T) int64, to `sentence_embedding`, (B, D) float32, for any B and T."""
    if not (find_spec("onnx") and find_spec("onnxscript")):
        raise ValueError("--with onnx needs onnx and onnxscript; install requirements/onnx.txt, or 'eadpr[onnx]'")
    path.parent.mkdir(parents=True)
    any_size = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    ids, mask = torch.zeros(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0  # a mask of ones alone would be taken for a constant
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns that torchvision is not there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that the exporter chooses itself
        torch.onnx.export(
            encoder, (ids, mask), path, input_names=["input_ids", "attention_mask"],
            output_names=["sentence_embedding"], dynamic_shapes=(any_size, any_size), external_data=False,
            verbose=False,
        )  # fmt: skip


def write_vectors(vectors: Vectors, passages: Path, folder: Path) -> None:
    """`vectors.npy` (P, D) float16; `index`, the same for FAISS, with inner products; `docid`, the P ids, a line each.

    The last two have the names that Pyserini looks for.
    """
    folder.mkdir()
    index = faiss.IndexScalarQuantizer(vectors.dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    whole = np.lib.format.open_memmap(folder / "vectors.npy", "w+", DTYPE, (vectors.rows, vectors.dim))
    for first, block in vectors.blocks(BLOCK):
        whole[first : first + len(block)] = block
        index.add(block.astype(np.float32))
    whole.flush()
    faiss.write_index(index, os.fspath(folder / "index"))
    with (folder / "docid").open("w", encoding="utf-8", newline="\n") as file:
        for batch in tables.batches(passages, Passage, ["id"]):
            file.writelines(f"{_key(one, passages)}\n" for one in batch.column("id").to_pylist())


def _key(passage_id: str, passages: Path) -> str:
    if passage_id.split() != [passage_id] or len(passage_id.encode()) > LONGEST_ID:
        raise ValueError(
            f"{passages}: id {passage_id[:40]!r} is not one word of at most {LONGEST_ID} bytes, which other engines' "
            "keys must be; rename it in the source, or publish without --with vectors"
        )
    return passage_id
