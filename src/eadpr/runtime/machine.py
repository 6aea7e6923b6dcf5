"""What decides floating-point results besides the data: threads, instruction sets, deterministic kernels.

`settle` must run before torch is imported, because MKL, oneDNN and ATen read their settings once.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from eadpr.runtime import cache, files
from eadpr.runtime.section import Section


class Machine(Section):
    threads: int = Field(ge=1)
    deterministic: bool
    precision: Literal["float32", "bfloat16", "auto"]


def settle(machine: Machine, *, spinning: bool = True) -> None:
    """`spinning`: whether threads of one operation keep their cores busy while they wait for the next, as they do
    unless told. That speeds up what shares its operations among threads, such as a search, and takes the cores from
    whatever else runs: pieces side by side (`parallel`), other work on the machine."""
    if not spinning:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if machine.deterministic:
        os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
        os.environ["MKL_ENABLE_INSTRUCTIONS"] = "AVX2"  # MKL_CBWR would make AMD processors a fifth slower
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(machine.threads)
    import torch

    # With a GPU the CPU has little else to do; without one its threads are torch's. Tokens are the same either way.
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if device() == "cuda" else "false"

    torch.set_num_threads(machine.threads)
    torch.use_deterministic_algorithms(machine.deterministic)
    # The deterministic mode also fills new tensors with NaN, to show code that reads them unset; that only costs time.
    torch.utils.deterministic.fill_uninitialized_memory = False


def libraries() -> list[str]:
    """Versions of the libraries that decide a model's bytes; in the key of all work kept between runs."""
    import tokenizers
    import torch
    import transformers

    return [library.__version__ for library in (torch, transformers, tokenizers)]


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def devices() -> list[str]:
    """The cards of this machine, or its CPU."""
    import torch

    return [f"cuda:{card}" for card in range(torch.cuda.device_count())] if device() == "cuda" else ["cpu"]


def key(module: str, inputs: Iterable[Path], *parts: object) -> str:
    """The key under which `cache` keeps what a module (its `__file__`) makes of files, of folders and of `parts`, which
    are JSON values or sections, with these libraries on this device."""
    hashes = [files.tree_sha256(path) if path.is_dir() else files.sha256(path) for path in inputs]
    plain = [part.model_dump() if isinstance(part, Section) else part for part in parts]
    return cache.fingerprint(hashes, plain, libraries(), device(), cache.code(module))


def autocast(machine: Machine):
    """A context for forward passes: bfloat16 where asked for, or with `auto` on GPUs that do not merely emulate it."""
    import torch

    kind = device()
    low = machine.precision == "bfloat16" or (
        machine.precision == "auto" and kind == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    )
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=low)


def place_model(model, machine: Machine):
    """The model on the device, for passes under `autocast`. Where those are in bfloat16, so are the weights of its
    matrix products, which each pass would convert: about half the memory, the same results."""
    import torch
    from torch.nn import Embedding, Linear

    with autocast(machine):
        low = torch.is_autocast_enabled(device())
    # A T5 may have one matrix for both its output and its embeddings, which autocast does not convert.
    embedded = {id(part.weight) for part in model.modules() if isinstance(part, Embedding)}
    for part in model.modules():
        if low and isinstance(part, Linear) and id(part.weight) not in embedded:
            part.to(torch.bfloat16)
    return model.to(device())
