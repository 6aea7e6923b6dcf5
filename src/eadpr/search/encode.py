"""Vectors of texts: `embed` takes token ids, `encode` writes all passages' vectors to float16 shards.

Finished shards are cached by content, so that a killed run resumes and arms that share a passage encoder share them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from eadpr.runtime import cache, files, jobs, machine, parallel
from eadpr.runtime.machine import Machine
from eadpr.runtime.progress import progress
from eadpr.search.config import Encode
from eadpr.search.vectors import DTYPE, MANIFEST, encoder_of, shard_name, shard_ranges
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training import encoder as text_encoder
from eadpr.training.config import AUTO
from eadpr.training.encoder import TextEncoder
from eadpr.training.padding import TOKENS, batches, pad

WINDOW = {"cpu": 4_096, "cuda": 16_384}  # passages
MOST, FULL = 262_144, 80 * 10**9  # tokens of a batch, on a GPU of so many bytes or more


@torch.inference_mode()
def embed(encoder: TextEncoder, ids: Sequence[Sequence[int]], *, token_budget: int | None = None) -> np.ndarray:
    """Return the vectors (N, dim) float32 of N token sequences, by an encoder on the device.

    A batch holds at most `token_budget` tokens, by default as many as suit the device.
    """
    device = machine.device()
    vectors_ND = torch.empty((len(ids), encoder.dim), device=device)

    def encode_batch(batch: np.ndarray) -> None:
        input_ids, attention_mask = pad([ids[i] for i in batch], encoder.pad_id)
        encoded = encoder(input_ids.to(device), attention_mask.to(device))
        vectors_ND.index_copy_(0, torch.from_numpy(batch).to(device), encoded.float())

    for _ in parallel.spread(encode_batch, batches([len(row) for row in ids], token_budget or TOKENS[device])):
        pass
    return vectors_ND.cpu().numpy()  # once: after every batch a GPU would wait for the next


def encode(passages: Path, model: Path, out: Path, *, settings: Encode, hardware: Machine) -> int:
    """Write the vectors of all passages to the folder `out` (see `vectors.Vectors`) and return their number.

    A worker (`jobs`) holds the encoder, three windows of passages with their tokens, a batch of `token_budget` tokens
    and a shard of vectors in memory. Raises ValueError without passages, or for a vector that is no finite float16.
    """
    rows, settings = tables.count(passages, Passage), resolve_auto(settings)
    if not rows:
        raise ValueError(f"{passages} holds no passages")
    inputs = encoder_of(model) | {"passages": files.sha256(passages)}
    inputs |= {"encode": settings.model_dump(), "machine": hardware.model_dump()}
    key = machine.key(__file__, [], inputs, DTYPE.str)
    ranges = shard_ranges(rows, settings.shard_passages)
    with cache.workspace("vectors", key) as shards:
        missing = [number for number in range(len(ranges)) if not cache.intact(shards / shard_name(number))]
        if missing:
            load = partial(load_passage_encoder, model, hardware)
            make = partial(encode_shards, passages, shards, settings, hardware)
            with progress("encode", sum(ranges[n][1] - ranges[n][0] for n in missing), "passages") as advance:
                for count in jobs.make_shards(load, make, missing, hardware):
                    advance(count)
        dim = np.load(shards / shard_name(0), mmap_mode="r").shape[1]
        manifest = {"rows": rows, "dim": dim, "dtype": "float16", "shard_passages": settings.shard_passages, **inputs}
        with files.new_folder(out) as folder:
            for number in range(len(ranges)):
                files.link_or_copy(shards / shard_name(number), folder / shard_name(number))
            files.write_json(folder / MANIFEST, manifest)
    return rows


def resolve_auto(settings: Encode) -> Encode:
    device, numbers = machine.device(), {}
    if settings.window_passages == "auto":
        numbers["window_passages"] = min(WINDOW[device], settings.shard_passages)
    if settings.token_budget == "auto":
        memory = torch.cuda.get_device_properties(0).total_memory if device == "cuda" else 0
        numbers["token_budget"] = card_tokens(memory) if memory else TOKENS[device]
    return settings.model_copy(update=numbers)


def card_tokens(memory: int) -> int:
    """Return the tokens of a batch on a GPU with so many bytes.

    They grow by powers of two, so that GPUs of similar memory make the same bytes.
    """
    return min(MOST, max(TOKENS["cuda"], 2 ** (memory * MOST // FULL).bit_length() // 2))


def load_passage_encoder(model: Path, hardware: Machine) -> TextEncoder:
    return machine.place_model(text_encoder.load(model, "passage", AUTO), hardware, inference=True)


def encode_shards(
    passages: Path, shards: Path, settings: Encode, hardware: Machine, encoder: TextEncoder
) -> Callable[[int], Iterator[int]]:
    """Return the function that encodes a shard of passages, by its number, into a file of the folder `shards`, and
    yields the number of passages of each window once it is encoded."""
    ranges = shard_ranges(tables.count(passages, Passage), settings.shard_passages)

    def tokenise(window: list[tuple[str, str, str]]) -> tuple[list[str], list[list[int]]]:
        ids, titles, texts = map(list, zip(*window, strict=True))
        return ids, encoder.passage_ids(titles, texts)

    def encode_shard(number: int) -> Iterator[int]:
        first, end = ranges[number]
        shard, done = np.empty((end - first, encoder.dim), DTYPE), 0
        for passage_ids, ids in parallel.ahead(tokenise, read_windows(passages, settings, first, end), threads=1):
            with machine.autocast(hardware, inference=True):
                vectors = embed(encoder, ids, token_budget=settings.token_budget)
            shard[done : done + len(vectors)] = to_float16(vectors, passage_ids)
            done += len(vectors)
            yield len(vectors)
        path = shards / shard_name(number)
        with files.replacing(path) as temporary, temporary.open("wb") as file:
            # Through `write`: into a file itself numpy's error of a full disk has neither number nor name.
            np.save(SimpleNamespace(write=file.write), shard, allow_pickle=False)
        cache.seal(path)

    return encode_shard


def read_windows(passages: Path, settings: Encode, first: int, end: int) -> Iterator[list[tuple[str, str, str]]]:
    """Yield id, title and text of the rows, `window_passages` at a time; the last window may hold fewer."""
    record_batches = tables.batches(passages, Passage, columns=["id", "title", "text"], first=first)
    columns = ([column.to_pylist() for column in batch.columns] for batch in record_batches)
    rows = islice(chain.from_iterable(zip(*lists, strict=True) for lists in columns), end - first)
    while window := list(islice(rows, settings.window_passages)):
        yield window


def to_float16(vectors: np.ndarray, ids: list[str]) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = vectors.astype(DTYPE)
    if not np.isfinite(narrow).all():
        row, column = np.argwhere(~np.isfinite(narrow))[0]
        reason = f"has a component {vectors[row, column]}, which is no finite float16; lower the learning rate"
        raise ValueError(f"the vector of passage {ids[row]!r} {reason}, or choose another encoder")
    return narrow
