"""A question and a path of passages as one sequence of tokens, and where in the passages its tokens stand.

`[CLS] question [SEP] title [SEP] text`, then `[SEP] title [SEP] text` for each further passage. Answers and sentences
are sought in texts, never in titles. A marked input, that of MDR's reader (Xiong et al., 2021, as in its code), is
`[CLS] question [SEP] yes no [SEP] title [unused1] sentence [unused1] sentence [SEP] title …`, then a last
[SEP]: answers are sought in titles too, and yes and no are spans. T tokens, P paths, S sentences.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerBase

from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Span
from eadpr.supervision import spans

NOWHERE = -1
PASSAGES_KEPT = 16_384  # tokenised passages, about 5 kB each


class Marks(NamedTuple):
    """Ids of what a marked input has besides: the words yes and no, and the token before a sentence."""

    words: tuple[int, int]
    sentence: int


class Tokens(NamedTuple):
    """Ids of a passage's title and text; `offsets` (N, 2) are those of the text's tokens into the text.

    Of a marked input `text` holds the title too, whose offsets are below 0, and the marks, which have no width."""

    title: list[int]
    text: list[int]
    offsets: np.ndarray


class PassagePiece(NamedTuple):
    """The text of a passage in an input: the place of its first token, how many stay; `offsets` as in `Tokens`, of what
    was cut off too."""

    begin: int
    kept: int
    offsets: np.ndarray


class Input(NamedTuple):
    """`after` is where the question has ended; one of `pieces` for each passage of the path, and behind these, where
    the input is marked, for yes and for no."""

    ids: list[int]
    after: int
    pieces: list[PassagePiece]

    def span(self, place: int, characters: Span) -> tuple[int, int] | None:
        """First and last token of a piece of the text of a passage, by its place in the path; None where the text is
        cut before its end."""
        begin, kept, offsets = self.pieces[place]
        inside = np.flatnonzero((offsets[:, 0] < characters.end) & (offsets[:, 1] > characters.start))
        if not len(inside) or inside[-1] >= kept:
            return None
        return begin + int(inside[0]), begin + int(inside[-1])

    def characters(self, first: int, last: int) -> tuple[int, Span]:
        """Which of the pieces a span of tokens is of, by its place, and the span in it."""
        place = int(self.passage_T[first])
        begin, _, offsets = self.pieces[place]
        return place, Span(int(offsets[first - begin, 0]), int(offsets[last - begin, 1]))

    @property
    def passage_T(self) -> np.ndarray:
        """The place in the path of the passage whose text each token is of, or NOWHERE."""
        found = np.full(len(self.ids), NOWHERE)
        for place, piece in enumerate(self.pieces):
            found[piece.begin : piece.begin + piece.kept] = place
        return found


class Sentences(NamedTuple):
    """The sentences of all passages of a path, in order: `numbers` says of which passage, by its place, and which of
    its sentences each is. `sentence_T` are indices of these, or NOWHERE. A sentence that was cut off has no token."""

    numbers: list[tuple[int, int]]
    sentence_T: np.ndarray

    @property
    def there_S(self) -> np.ndarray:
        """Which have a token."""
        return np.isin(np.arange(len(self.numbers)), self.sentence_T)


def make_input(
    tokenizer: PreTrainedTokenizerBase, question: Sequence[int], passages: Sequence[Tokens], most: int
) -> Input:
    """Of at most `most` tokens: what the question leaves goes to the passages in equal parts, and what a short one
    leaves to the others (`shares`). All are cut at their end."""
    ids = [tokenizer.cls_token_id, *question, tokenizer.sep_token_id]
    after, pieces = len(ids), []
    room = most - len(ids) - (2 * len(passages) - 1)
    parts = shares([len(passage.title) + len(passage.text) for passage in passages], room)
    for place, (passage, part) in enumerate(zip(passages, parts, strict=True)):
        title = passage.title[:part]
        text = passage.text[: part - len(title)]
        ids += [*([tokenizer.sep_token_id] if place else []), *title, tokenizer.sep_token_id]
        pieces.append(PassagePiece(len(ids), len(text), passage.offsets))
        ids += text
    return Input(ids, after, pieces)


def marked_input(
    tokenizer: PreTrainedTokenizerBase, marks: Marks, question: Sequence[int], passages: Sequence[Tokens], most: int
) -> Input:
    """Of at most `most` tokens: what is behind these is cut, the last passages first."""
    sep = tokenizer.sep_token_id
    ids = [tokenizer.cls_token_id, *question, sep]
    after, pieces = len(ids), []
    ids += marks.words
    for passage in passages:
        ids.append(sep)
        text = passage.text[: max(0, most - 1 - len(ids))]
        pieces.append(PassagePiece(len(ids), len(text), passage.offsets))
        ids += text
    pieces += [PassagePiece(after + i, 1, np.array([[0, 1]])) for i in range(len(marks.words))]
    return Input([*ids[: most - 1], sep], after, pieces)


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """How many tokens of each passage stay, so that together they fill no more than `room`: all below a common limit,
    which is as high as can be; where single tokens are left over, the first get them."""
    found = [0] * len(sizes)
    while (open_ := [i for i, size in enumerate(sizes) if found[i] < size]) and (left := room - sum(found)) > 0:
        for i in open_[: left if left < len(open_) else None]:
            found[i] += min(sizes[i] - found[i], max(1, left // len(open_)))
    return found


def sentences_of_tokens(starts: Sequence[int], sentences: Sequence[Span]) -> list[int]:
    """Index of the sentence in which each token begins, NOWHERE between sentences; sentences are in order, blank ones
    hold none."""
    found, i = [], 0
    for start in starts:
        while i < len(sentences) and sentences[i].end <= start:
            i += 1
        found.append(i if i < len(sentences) and sentences[i].start <= start else NOWHERE)
    return found


class Passages:
    """Passages of a store by row, tokenised; the last ones asked for are kept. `mark` stands before each sentence of a
    marked input, None: of others."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, store: PassageStore, *, title_tokens: int, mark: int | None = None
    ) -> None:
        def made(row: int) -> Tokens:
            if mark is None:
                return tokens(tokenizer, store.titles([row])[0], self.text(row), title_tokens=title_tokens)
            return marked(tokenizer, self._title(row), self.text(row), [s.start for s in self.sentences(row)], mark)

        self.store, self.tokens = store, lru_cache(maxsize=PASSAGES_KEPT)(made)
        self._mark = mark

    def text(self, row: int) -> str:
        return self.store.texts([row])[0]

    def piece(self, row: int, span: Span) -> str:
        """Of the text, with what the span takes of the title before it."""
        title = self._title(row)
        return (title + self.text(row))[len(title) + span.start : len(title) + span.end]

    def _title(self, row: int) -> str:
        return f"{self.store.titles([row])[0].strip()} "

    def sentences(self, row: int) -> list[Span]:
        return spans.sentences_of(Passage("", "", self.text(row), *self.store.sentences([row])))

    def sentences_in(self, given: Input, path: Sequence[int]) -> Sentences:
        """The sentences of an input's passages, which are these rows."""
        numbers: list[tuple[int, int]] = []
        sentence_T = np.full(len(given.ids), NOWHERE)
        for place, (row, piece) in enumerate(zip(path, given.pieces[: len(path)], strict=True)):
            text, own = self.text(row), self.sentences(row)
            here = slice(piece.begin, piece.begin + piece.kept)
            if self._mark is None:
                held = np.array(sentences_of_tokens([_start(text, *o) for o in piece.offsets[: piece.kept]], own), int)
            else:  # a sentence is its mark alone
                marks = np.array(given.ids[here]) == self._mark
                held = np.where(marks, marks.cumsum() - 1, NOWHERE)
            sentence_T[here] = np.where(held == NOWHERE, NOWHERE, held + len(numbers))
            numbers += [(place, number) for number in range(len(own))]
        return Sentences(numbers, sentence_T)


def tokens(tokenizer: PreTrainedTokenizerBase, title: str, text: str, *, title_tokens: int) -> Tokens:
    """Of one passage; the title is cut."""
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    offsets = np.array(found["offset_mapping"], dtype=np.int32).reshape(-1, 2)
    return Tokens(ids_of(tokenizer, title.strip())[:title_tokens], found["input_ids"], offsets)


def marked(tokenizer: PreTrainedTokenizerBase, title: str, text: str, sentences: Sequence[int], mark: int) -> Tokens:
    """Title and text as one, with `mark` before what begins at each of `sentences`, offsets in order; the title ends
    with a space."""
    found = tokens(tokenizer, "", title + text, title_tokens=0)
    offsets = found.offsets - len(title)
    at = np.searchsorted(offsets[:, 0], sentences)
    own = np.array(sentences, np.int32)[:, None]
    ids = np.insert(np.array(found.text, int), at, mark)
    return Tokens([], ids.tolist(), np.insert(offsets, at, own, axis=0))


def ids_of(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]


def _start(text: str, start: int, end: int) -> int:
    """Where a token begins, behind the white space that tokens of byte-level vocabularies begin with."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()) if piece.strip() else start
