"""A model behind an OpenAI-compatible address (`POST <url>/embeddings`), to measure its awareness."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from eadpr.library.awareness import JOIN, Scorer, of_vectors
from eadpr.library.texts import joined
from eadpr.runtime import parallel
from eadpr.writers.config import URL
from eadpr.writers.endpoint import AT_ONCE, post, read_key

BATCH = 32  # texts of a request: no common server takes fewer


def endpoint(
    url: str,
    model: str,
    *,
    key_variable: str | None = None,
    join: str = JOIN,
    prompts: tuple[str, str] = ("", ""),
) -> Scorer:
    """For `awareness`: scores are dot products of the vectors as the server gives them.

    `url` ends before /embeddings. `key_variable` names the environment variable of the key, None sends none. `prompts`
    stand before each question and each passage, as the model was trained with; servers add none. Nothing is kept: the
    same name may stand for another model tomorrow. How far the model reads is not known, so no pair counts as cut.
    Raises ValueError for a bad address or a missing key, OSError where no vectors that make sense can be had.
    """
    if not re.match(URL, url):
        raise ValueError(f"{url!r} is no address of an endpoint; give one such as http://127.0.0.1:8000/v1")
    address = f"{url.rstrip('/')}/embeddings"

    def vectors(texts: Sequence[str]) -> np.ndarray:
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        found = list(parallel.ahead(lambda one: _vectors(address, model, key_variable, one), batches, threads=AT_ONCE))
        if len(lengths := sorted({len(one[0]) for one in found})) > 1:
            raise OSError(f"{address} gave vectors of {lengths[0]} and of {lengths[1]} numbers; ask one model")
        return np.concatenate(found)

    def texts_of(titles: Sequence[str], texts: Sequence[str]) -> list[str]:
        return [prompts[1] + joined(join, *pair) for pair in zip(titles, texts, strict=True)]

    score = of_vectors(lambda asked: vectors([prompts[0] + one for one in asked]), vectors, texts_of)
    return Scorer(score, texts_of)


def _vectors(address: str, model: str, key_variable: str | None, texts: Sequence[str]) -> np.ndarray:
    """(texts, dimensions) float32."""
    body = {"model": model, "input": list(texts), "encoding_format": "float"}
    found = post(address, body, read_key(key_variable), _read, "data[].embedding")
    if set(found) != set(range(len(texts))):
        raise OSError(
            f"{address} gave vectors number {sorted(found, key=str)} for {len(texts)} texts; expected one for each"
        )
    try:
        with np.errstate(over="ignore"):
            vectors = np.array([found[place] for place in range(len(texts))], dtype=np.float32)
    except (ValueError, TypeError, OverflowError):  # not numbers, or rows of several lengths
        vectors = np.zeros(0, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.size:
        raise OSError(f"{address} gave vectors that are not all lists of as many numbers; ask for an embedding model")
    if len(bad := np.flatnonzero(~np.isfinite(vectors).all(axis=1))):
        raise OSError(f"{address} gave a vector with a number that is not finite, for the text {texts[bad[0]][:80]!r}")
    return vectors


def _read(said: str) -> dict[int, Any] | None:
    """Vectors by their index, which some servers leave out where it is 0; None where there are none."""
    try:
        data = json.loads(said)["data"]
        return {i if one.get("index") is None else one["index"]: one["embedding"] for i, one in enumerate(data)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
