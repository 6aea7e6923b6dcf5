"""A question and a path of passages as one sequence of tokens, and where in the passages its tokens stand.

`[CLS] question [SEP] title text [SEP] title text [SEP]`. Answers and sentences are sought in texts, never in titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from eadpr.reading_multihop.config import PathReading
from eadpr.records import Passage, Span

NOWHERE = -1


class PathInput(NamedTuple):
    """T tokens, and the sentences of all passages in order.

    `passage_T` and `sentence_T` are indices, NOWHERE for tokens of no text or between sentences; `offsets_T2` are
    characters of the passage's text; `sentences` says which passage, and which of its sentences, each is. A sentence
    that was cut off keeps its place and has no token.
    """

    ids_T: np.ndarray
    second_T: np.ndarray
    passage_T: np.ndarray
    offsets_T2: np.ndarray
    sentence_T: np.ndarray
    sentences: list[tuple[int, int]]


class Batch(NamedTuple):
    """N paths padded to the longest; `sentences` is the largest number of sentences of one."""

    ids_NT: Tensor
    mask_NT: Tensor
    second_NT: Tensor
    readable_NT: Tensor
    sentence_NT: Tensor
    sentences: int

    def to(self, device: str) -> Batch:
        return Batch(*(tensor.to(device) for tensor in self[:5]), self.sentences)


def path_input(
    tokenizer: PreTrainedTokenizerBase,
    question: str,
    passages: Sequence[Passage],
    sentences: Sequence[Sequence[Span]],
    settings: PathReading,
) -> PathInput:
    """`sentences` are spans of each passage's text.

    The question is cut to its length; what is left of `input_tokens` goes to the passages in equal parts, and what a
    short one leaves to the others (`shares`). All are cut at their end.
    """
    asked = _ids(tokenizer, question)[: settings.question_tokens]
    ids = [tokenizer.cls_token_id, *asked, tokenizer.sep_token_id]
    second = [0] * len(ids)
    where: list[tuple[int, int, int, int]] = [(NOWHERE, 0, 0, NOWHERE)] * len(ids)  # passage, start, end, sentence
    pieces = [_piece(tokenizer, passage) for passage in passages]
    room = settings.input_tokens - len(ids) - len(pieces)
    numbered: list[tuple[int, int]] = []
    for place, ((title, text, offsets), share) in enumerate(
        zip(pieces, shares(list(map(_size, pieces)), room), strict=True)
    ):
        title = title[:share]
        text, offsets = text[: share - len(title)], offsets[: share - len(title)]
        holding = sentences_of(offsets, sentences[place])
        where += [(NOWHERE, 0, 0, NOWHERE)] * len(title)
        where += [
            (place, *span, NOWHERE if own == NOWHERE else own + len(numbered))
            for span, own in zip(offsets, holding, strict=True)
        ]
        where.append((NOWHERE, 0, 0, NOWHERE))
        ids += [*title, *text, tokenizer.sep_token_id]
        numbered += [(place, number) for number in range(len(sentences[place]))]
    second += [1] * (len(ids) - len(second))
    columns = np.array(where, dtype=np.int64)
    return PathInput(
        np.array(ids, dtype=np.int64), np.array(second, dtype=np.int64), columns[:, 0], columns[:, 1:3], columns[:, 3],
        numbered,
    )  # fmt: skip


Piece = tuple[list[int], list[int], list[tuple[int, int]]]


def _piece(tokenizer: PreTrainedTokenizerBase, passage: Passage) -> Piece:
    """Ids of the title, ids of the text and their offsets."""
    read = tokenizer(passage.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return _ids(tokenizer, passage.title), read["input_ids"], [_inner(passage.text, *o) for o in read["offset_mapping"]]


def _inner(text: str, start: int, end: int) -> tuple[int, int]:
    """Without white space, which tokens of byte-level vocabularies begin with."""
    piece = text[start:end]
    if not piece.strip():
        return start, end
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]


def _size(piece: Piece) -> int:
    return len(piece[0]) + len(piece[1])


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """How many tokens of each piece stay, so that together they fill no more than `room`: all below a common limit,
    which is as high as can be; where single tokens are left over, the first get them."""
    found = [0] * len(sizes)
    while (open_ := [i for i, size in enumerate(sizes) if found[i] < size]) and (left := room - sum(found)) > 0:
        for i in open_[: left if left < len(open_) else None]:
            found[i] += min(sizes[i] - found[i], max(1, left // len(open_)))
    return found


def sentences_of(offsets: Sequence[tuple[int, int]], sentences: Sequence[Span]) -> list[int]:
    """Index of the sentence in which each token begins, NOWHERE between sentences; sentences are in order, blank ones
    hold none."""
    found, i = [], 0
    for start, _ in offsets:
        while i < len(sentences) and sentences[i].end <= start:
            i += 1
        found.append(i if i < len(sentences) and sentences[i].start <= start else NOWHERE)
    return found


def collate(inputs: Sequence[PathInput], pad_id: int) -> Batch:
    longest = max(len(one.ids_T) for one in inputs)

    def padded(rows: Sequence[np.ndarray], fill: int) -> Tensor:
        return torch.from_numpy(np.stack([np.pad(row, (0, longest - len(row)), constant_values=fill) for row in rows]))

    return Batch(
        padded([one.ids_T for one in inputs], pad_id),
        padded([np.ones_like(one.ids_T) for one in inputs], 0),
        padded([one.second_T for one in inputs], 0),
        padded([one.passage_T for one in inputs], NOWHERE) >= 0,
        padded([one.sentence_T for one in inputs], NOWHERE),
        max(len(one.sentences) for one in inputs),
    )


def token_spans(one: PathInput, answers: Sequence[Sequence[Span]]) -> list[tuple[int, int]]:
    """First and last token (inclusive) of each answer's place; `answers` are spans of each passage's text. Places that
    were cut off, in part or whole, are left out."""
    found = []
    for place, own in enumerate(answers):
        tokens = np.flatnonzero(one.passage_T == place)
        starts, ends = one.offsets_T2[tokens].T if len(tokens) else (np.zeros(0), np.zeros(0))
        for answer in own:
            inside = tokens[(starts < answer.end) & (ends > answer.start)]
            if len(inside) and ends[tokens == inside[-1]][0] >= answer.end:
                found.append((int(inside[0]), int(inside[-1])))
    return found
