"""Settings that decide floating-point results: threads, deterministic kernels, precision.

`settle` must run before torch is imported, because its libraries read their settings once.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from eadpr.runtime import cache, files
from eadpr.runtime.section import Section

WORKERS = {"cpu": 1, "cuda": 3}  # a device; on a GPU, one tokenises or writes while another computes


class Machine(Section):
    threads: int = Field(ge=1, le=1024)
    deterministic: bool
    precision: Literal["float32", "bfloat16", "auto"]


def settle(machine: Machine, *, spinning: bool = False) -> None:
    """Set this process up for the machine's settings.

    `spinning` threads keep their cores busy while they wait for the next operation, as torch's do unless told: a little
    faster alone, and several times slower beside pieces (`parallel`), other stages (`eadpr repro`) and other programs.
    """
    if not spinning:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if machine.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(machine.threads)
    # oneDNN keeps code and memory of each shape of a bfloat16 product, 1,024 shapes unless told; a batch has some 20.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    import torch

    # With a GPU, cores are free for tokenizers; without one, torch needs them. Tokens are the same.
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if device() == "cuda" else "false"

    torch.set_num_threads(machine.threads)
    torch.use_deterministic_algorithms(machine.deterministic)
    # Deterministic mode also fills new tensors with NaN, to expose reads of unset values; here that only costs time.
    torch.utils.deterministic.fill_uninitialized_memory = False


def libraries() -> list[str]:
    """Return the versions of the libraries that decide a model's bytes, and the processor's instructions."""
    import tokenizers
    import torch
    import transformers

    versions = [library.__version__ for library in (torch, transformers, tokenizers)]
    low = ["bfloat16"] if multiplies_bfloat16() else []
    return [*versions, torch.backends.cpu.get_cpu_capability(), *low]


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def devices() -> list[str]:
    import torch

    return [f"cuda:{card}" for card in range(torch.cuda.device_count())] if device() == "cuda" else ["cpu"]


def send(tensor):
    """Return a tensor of the CPU on the device; a card fetches it behind what is queued, and nobody waits."""
    return tensor.pin_memory().to("cuda", non_blocking=True) if device() == "cuda" else tensor


def key(module: str, inputs: Iterable[Path], *parts: object) -> str:
    """Return the cache key of work that a module (its `__file__`) does with input files or folders; `parts` are further
    JSON values or sections. Libraries, device and the module's code are part of the key."""
    plain = [part.model_dump() if isinstance(part, Section) else part for part in parts]
    return cache.fingerprint(list(map(files.tree_sha256, inputs)), plain, libraries(), device(), cache.code(module))


def multiplies_bfloat16() -> bool:
    """Check whether the device has instructions for bfloat16, without which it is slower than float32."""
    import torch

    if device() == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    can = torch.cpu.get_capabilities()
    return bool(can.get("amx_bf16") or can.get("avx512_bf16"))


def autocast(machine: Machine, *, inference: bool = False):
    """Return the context for forward passes: bfloat16 if set, or if `auto` where the device multiplies it. A CPU gains
    in `inference` alone; it trains in float32, unless told otherwise."""
    import torch

    auto = machine.precision == "auto" and (inference or device() == "cuda") and multiplies_bfloat16()
    return torch.autocast(device(), dtype=torch.bfloat16, enabled=auto or machine.precision == "bfloat16")


def place_model(model, machine: Machine, *, inference: bool = False):
    """Move a model to the device for passes under `autocast`. Where these are in bfloat16, matrix weights are converted
    now, not in each pass: the same results, half the memory."""
    import torch
    from torch.nn import Embedding, Linear

    with autocast(machine, inference=inference):
        low = torch.is_autocast_enabled(device())
    # T5 may share one matrix between its output and its embeddings, which autocast does not convert.
    embeddings = {id(part.weight) for part in model.modules() if isinstance(part, Embedding)}
    for part in model.modules():
        if low and isinstance(part, Linear) and id(part.weight) not in embeddings:
            part.to(torch.bfloat16)
    return model.to(device())
