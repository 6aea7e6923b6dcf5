"""A question and a path of passages as one sequence of tokens, with the places of its tokens in the passages.

`[CLS] question [SEP] title [SEP] text`, then `[SEP] title [SEP] text` for each further passage. Answers and sentences
are in texts, never in titles. T tokens, S sentences.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Span
from eadpr.text import spans

NOWHERE = -1
CACHED_PASSAGES = 16_384  # tokenised, about 5 kB each


class Tokens(NamedTuple):
    """The ids of a passage's title and text, with the `offsets` (N, 2) of the text's tokens into the text."""

    title: list[int]
    text: list[int]
    offsets: np.ndarray


class Input(NamedTuple):
    """The ids of an input, `question_length` of them for the question.

    `passage_T` is the place in the path of the passage whose text a token is of, NOWHERE for question and titles, and
    `offsets_T2` are its characters there. Each passage's text is cut off at a character of `cut_P`.
    """

    ids: list[int]
    question_length: int
    passage_T: np.ndarray
    offsets_T2: np.ndarray
    cut_P: list[int]

    def span(self, place: int, characters: Span) -> tuple[int, int] | None:
        """Return the first and last token of a span of the passage at `place` in the path, or None if it is cut off."""
        starts_T, ends_T = self.offsets_T2.T
        overlap_T = (starts_T < characters.end) & (ends_T > characters.start)
        inside = np.flatnonzero(overlap_T & (self.passage_T == place))
        if not len(inside) or characters.end > self.cut_P[place]:
            return None
        return int(inside[0]), int(inside[-1])

    def characters(self, first: int, last: int) -> tuple[int, Span]:
        """Return the place of the passage that a span of tokens lies in, and the span's characters there."""
        return int(self.passage_T[first]), Span(int(self.offsets_T2[first, 0]), int(self.offsets_T2[last, 1]))


class Sentences(NamedTuple):
    """The sentences of all passages of a path, in order. `numbers` are (place of the passage, number of its sentence);
    `sentence_T` are each token's indices into `numbers`, or NOWHERE. A sentence that was cut off has no token."""

    numbers: list[tuple[int, int]]
    sentence_T: np.ndarray

    @property
    def there_S(self) -> np.ndarray:
        """True for sentences with a token."""
        return np.isin(np.arange(len(self.numbers)), self.sentence_T)


def make_input(
    tokenizer: PreTrainedTokenizerBase, question: Sequence[int], passages: Sequence[Tokens], most: int
) -> Input:
    """Return an input of at most `most` tokens. Passages share the tokens after the question equally, and the rest of a
    short one goes to the longer ones (`shares`); all are cut at their end."""
    sep = tokenizer.sep_token_id
    ids = [tokenizer.cls_token_id, *question, sep]
    question_length, cut_P = len(ids), []
    places, offsets = [np.full(len(ids), NOWHERE)], [np.zeros((len(ids), 2), np.int32)]
    room = most - len(ids) - (2 * len(passages) - 1)
    parts = shares([len(passage.title) + len(passage.text) for passage in passages], room)
    for place, (passage, part) in enumerate(zip(passages, parts, strict=True)):
        title = passage.title[:part]
        head, text = [*title, sep], passage.text[: part - len(title)]
        if place:
            head = [sep, *head]
        ids += [*head, *text]
        places += [np.full(len(head), NOWHERE), np.full(len(text), place)]
        offsets += [np.zeros((len(head), 2), np.int32), passage.offsets[: len(text)]]
        cut_P.append(passage.offsets[len(text), 0] if len(text) < len(passage.text) else np.iinfo(np.int32).max)
    return Input(ids, question_length, np.concatenate(places), np.concatenate(offsets), cut_P)


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Return the number of tokens to use of each passage, together at most `room`. Passages are cut to a common limit,
    as high as possible; single tokens that remain go to the first passages."""
    parts = [0] * len(sizes)
    while True:
        cut = [i for i, size in enumerate(sizes) if parts[i] < size]
        rest = room - sum(parts)
        if not cut or rest <= 0:
            return parts
        for i in cut[:rest]:
            parts[i] += min(sizes[i] - parts[i], max(1, rest // len(cut)))


def find_sentences(places: np.ndarray, sentences: Sequence[Span]) -> np.ndarray:
    """Return the index of the sentence that each character lies in, NOWHERE between sentences, which are in order."""
    starts = np.array([*(sentence.start for sentence in sentences), np.iinfo(np.int64).max])
    numbers = np.searchsorted([sentence.end for sentence in sentences], places, side="right")
    return np.where(starts[numbers] <= places, numbers, NOWHERE)


class Passages:
    """Tokenised passages of a store by row, with a cache; titles are cut to `title_tokens`."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, store: PassageStore, *, title_tokens: int) -> None:
        def tokenize_row(row: int) -> Tokens:
            return tokenize(tokenizer, store.titles([row])[0], self.text(row), title_tokens=title_tokens)

        self.store, self.tokens = store, lru_cache(maxsize=CACHED_PASSAGES)(tokenize_row)

    def text(self, row: int) -> str:
        return self.store.texts([row])[0]

    def sentences(self, row: int) -> list[Span]:
        return spans.sentences_of(Passage("", "", self.text(row), *self.store.sentences([row])))

    def sentences_in(self, path_input: Input, path: Sequence[int]) -> Sentences:
        """Return the sentences of an input; `path` are the rows of its passages."""
        numbers: list[tuple[int, int]] = []
        sentence_T = np.full(len(path_input.ids), NOWHERE)
        for place, row in enumerate(path):
            sentences, inside_T = self.sentences(row), path_input.passage_T == place
            # Looked up by its end: tokens of byte-level vocabularies begin with the white space before a word.
            indices = find_sentences(path_input.offsets_T2[inside_T, 1] - 1, sentences)
            sentence_T[inside_T] = np.where(indices == NOWHERE, NOWHERE, indices + len(numbers))
            numbers += [(place, number) for number in range(len(sentences))]
        return Sentences(numbers, sentence_T)


def tokenize(tokenizer: PreTrainedTokenizerBase, title: str, text: str, *, title_tokens: int) -> Tokens:
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    offsets = np.array(encoding["offset_mapping"], dtype=np.int32).reshape(-1, 2)
    return Tokens(to_ids(tokenizer, title.strip())[:title_tokens], encoding["input_ids"], offsets)


def to_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
