"""The tokens of a passage's sentences, by the offsets of the tokenizer, and their states.

Shapes: B texts, T tokens, S sentences, D dimensions of a state.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BatchEncoding

from eadpr.storage.records import Span

MARK = 1 << 30  # added to the id of a sentence's first token; larger than any id, and the sum fits an int32

Spans = Sequence[Sequence[Span]]  # of the sentences of each text


class CutPassage(NamedTuple):
    """A passage's token ids, as `passage_ids` returns them, and (T,) the number of each token's sentence, -1 for a
    token of none: special, or of the title or the prompt."""

    ids: list[int]
    sentence_of_token: NDArray[np.int64]

    def mark(self) -> list[int]:
        """Return the ids, with MARK added where a sentence begins."""
        numbers, places = np.unique(self.sentence_of_token, return_index=True)
        ids = np.array(self.ids, np.int64)
        ids[places[numbers >= 0]] += MARK
        return ids.tolist()


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
    """Return starts and ends (2, S) of spans of `text` in an input that ends with it, stripped and perhaps `lower`."""
    first, stripped = len(text) - len(text.lstrip()), text.strip()

    def place(edge: int) -> int:
        rest = stripped[max(0, edge - first) :]
        return len(read.lower()) - len(rest.lower()) if lower else len(read) - len(rest)

    return np.array([[place(edge) for edge in span] for span in spans], np.int64).reshape(-1, 2).T


def pool_sentences(states_BTD: Tensor, marks_BT: Tensor, keep_BT: Tensor, pooled_BD: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean state (B, S, D) float32 of each sentence's tokens, and which of the sentences (B, S) exist.

    A sentence begins at its mark; tokens not to `keep`, and those before the first mark, are in none. A text without a
    mark, as a question, is `pooled_BD` alone.
    """
    number_BT = marks_BT.cumsum(1) * keep_BT
    count = max(1, int(number_BT.max()))
    sums_BSD = states_BTD.new_zeros(len(states_BTD), count + 1, states_BTD.shape[-1], dtype=torch.float32)
    sums_BSD = sums_BSD.scatter_add(1, number_BT.unsqueeze(-1).expand_as(states_BTD), states_BTD.float())[:, 1:]
    tokens_BS = (number_BT.unsqueeze(1) == torch.arange(1, count + 1, device=number_BT.device)[:, None]).sum(-1)
    means_BSD = sums_BSD / tokens_BS.clamp(min=1).unsqueeze(-1)
    unmarked_B = ~marks_BT.any(1)
    first_BD = torch.where(unmarked_B.unsqueeze(-1), pooled_BD, means_BSD[:, 0])
    exists_BS = tokens_BS.bool()
    exists_BS[:, 0] |= unmarked_B
    return torch.cat([first_BD.unsqueeze(1), means_BSD[:, 1:]], 1), exists_BS
