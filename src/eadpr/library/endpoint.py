"""A model behind an OpenAI-compatible address (`POST <url>/embeddings`), to measure its awareness."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from eadpr.library.scorers import JOIN, Scorer, score_by_vectors
from eadpr.library.texts import join_title
from eadpr.runtime import parallel
from eadpr.writers.config import URL
from eadpr.writers.endpoint import AT_ONCE, post, read_key

BATCH = 32  # texts of a request: no common server takes fewer


def endpoint(
    url: str, model: str, *, key_variable: str | None = None, join: str = JOIN, prompts: tuple[str, str] = ("", "")
) -> Scorer:
    """Return a scorer for `awareness`: dot products of the vectors as the server gives them.

    `url` ends before /embeddings. `key_variable` names the environment variable of the key; None sends none. `prompts`
    stand before each question and each passage, as the model was trained with; servers add none. Vectors are not
    cached, since a name may stand for another model tomorrow. No pair counts as cut, since nobody tells how far the
    model reads. Raises ValueError for a bad address or a missing key, OSError if the server gives no usable vectors.
    """
    if not re.match(URL, url):
        raise ValueError(f"{url!r} is no address of an endpoint; give one such as http://127.0.0.1:8000/v1")
    address = f"{url.rstrip('/')}/embeddings"

    def encode_batch(texts: Sequence[str]) -> np.ndarray:
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        embeddings = post(address, body, read_key(key_variable), _parse_embeddings, "data[].embedding")
        return _checked(embeddings, texts, address)

    def encode(texts: Sequence[str]) -> np.ndarray:
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        vectors = list(parallel.ahead(encode_batch, batches, threads=AT_ONCE))
        if len(lengths := sorted({batch.shape[1] for batch in vectors})) > 1:
            raise OSError(f"{address} gave vectors of {lengths[0]} and of {lengths[1]} numbers; ask one model")
        return np.concatenate(vectors)

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> list[str]:
        return [prompts[1] + join_title(join, *pair) for pair in zip(titles, texts, strict=True)]

    score = score_by_vectors(lambda questions: encode([prompts[0] + text for text in questions]), encode, inputs)
    return Scorer(score, inputs)


def _checked(embeddings: dict[int, Any], texts: Sequence[str], address: str) -> np.ndarray:
    """Return (texts, dimensions) float32; raises OSError unless each text has a vector of finite numbers."""
    if set(embeddings) != set(range(len(texts))):
        numbers = sorted(embeddings, key=str)
        raise OSError(f"{address} gave vectors number {numbers} for {len(texts)} texts; expected one for each")
    try:
        with np.errstate(over="ignore"):
            vectors = np.array([embeddings[i] for i in range(len(texts))], dtype=np.float32)
    except (ValueError, TypeError, OverflowError):  # not numbers, or rows of several lengths
        vectors = np.zeros(0, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
        raise OSError(
            f"{address} gave vectors that are not all lists of as many finite numbers; ask for an embedding model"
        )
    return vectors


def _parse_embeddings(reply: str) -> dict[int, Any] | None:
    """Return the vectors by their index, which some servers leave out; None if the reply has none."""
    try:
        data = json.loads(reply)["data"]
        return {i if row.get("index") is None else row["index"]: row["embedding"] for i, row in enumerate(data)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
