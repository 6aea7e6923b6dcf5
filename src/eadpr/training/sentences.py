"""The tokens of a passage's sentences, by the offsets of the tokenizer. Shapes: T tokens, S sentences."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from transformers import BatchEncoding

from eadpr.storage.records import Span

Spans = Sequence[Sequence[Span]]  # of the sentences of each text


class CutPassage(NamedTuple):
    """A passage's token ids, as `passage_ids` returns them, and (T,) the number of each token's sentence, -1 for a
    token of none: special, or of the title or the prompt."""

    ids: list[int]
    sentence_of_token: NDArray[np.int64]


def assign_tokens(
    encoded: BatchEncoding,
    inputs: Sequence[str | tuple[str, str]],
    texts: Sequence[str],
    spans: Spans,
    special: Sequence[int],
    *,
    lower: bool,
) -> list[CutPassage]:
    """Return the tokens of `encoded` with the sentence of each, at the `spans`, sorted and disjoint, of `texts`.

    Each of the `inputs`, or the second of a pair, ends with its text, stripped; with `lower`, in lower case. A token
    belongs to the sentence that holds its last character.
    """
    passages = []
    for i, (read, text, text_spans) in enumerate(zip(inputs, texts, spans, strict=True)):
        ids, part = encoded["input_ids"][i], int(isinstance(read, tuple))
        inside = np.array([number == part for number in encoded.sequence_ids(i)], np.bool_) & ~np.isin(ids, special)
        starts, ends = _shift(text_spans, text, read[1] if part else read, lower=lower)
        first, end = np.array(encoded["offset_mapping"][i]).reshape(-1, 2).T
        number = np.searchsorted(starts, end - 1, side="right") - 1
        inside &= (end > first) & (end <= np.append(ends, -1)[number])  # number -1: before the first sentence
        passages.append(CutPassage(ids, np.where(inside, number, -1)))
    return passages


def _shift(spans: Sequence[Span], text: str, read: str, *, lower: bool) -> NDArray[np.int64]:
    """Return starts and ends (2, S) of spans of `text` in an input that ends with it, stripped; in lower case a text
    may have another length."""
    first, stripped = len(text) - len(text.lstrip()), text.strip()

    def place(edge: int) -> int:
        rest = stripped[max(0, edge - first) :]
        return len(read.lower()) - len(rest.lower()) if lower else len(read) - len(rest)

    return np.array([[place(edge) for edge in span] for span in spans], np.int64).reshape(-1, 2).T
