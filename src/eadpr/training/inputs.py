"""Token ids of an example set's questions, passages, distractors and placebos."""

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa

from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Span
from eadpr.text.answers import merge
from eadpr.text.spans import overlapping, sentences
from eadpr.training.encoder import TOKENISED_AT_ONCE, TextEncoder
from eadpr.training.example_set import NUMBERS, ExampleSet

QUESTION, PASSAGE = 0, 1  # tell the random streams of one seed apart
CACHED = 1_000_000  # tokenised passages in memory, about 300 bytes each


class PassageInputs:
    """Token ids and texts by key of passages, distractors and placebos, tokenised when first needed.

    The key of a passage is its row; `distractors` and `placebos`, by example, have keys from `len(store)` on. With
    `shuffle_seed` the words of every text, not of its title, are shuffled in the inputs.
    """

    def __init__(
        self, examples: ExampleSet, store: PassageStore, encoder: TextEncoder, *, shuffle_seed: int | None = None
    ) -> None:
        self._positives = examples.positives
        self._derived = [*examples.distractors, *(examples.placebos or [])]  # texts made of positives
        keys = [None if text is None else len(store) + i for i, text in enumerate(self._derived)]
        self.distractors, self.placebos = keys[: len(examples.positives)], keys[len(examples.positives) :]
        self._store = store
        self._encoder = encoder
        self._shuffle_seed = shuffle_seed
        self._ids: dict[int, np.ndarray] = {}
        self._evidence = examples.evidence or [None] * len(examples.positives)
        self._parts: dict[int, np.ndarray] = {}

    def texts(self, keys: Sequence[int]) -> list[str]:
        first = len(self._store)
        return [self._derived[key - first] if key >= first else self._store.texts([key])[0] for key in keys]

    def sources(self, keys: Sequence[int]) -> np.ndarray:
        """Return the row of each key's passage: itself, or the positive that a distractor or placebo was made of."""
        rows = np.array(keys, dtype=np.int64)
        derived = rows >= len(self._store)
        rows[derived] = self._positives[(rows[derived] - len(self._store)) % len(self._positives)]
        return rows

    def ids(self, keys: Sequence[int]) -> list[np.ndarray]:
        """Return the token ids of each key; a distractor or placebo has the title of its positive."""
        if len(self._ids) > CACHED:
            self._ids.clear()
        missing = list(dict.fromkeys(key for key in keys if key not in self._ids))
        texts = self.texts(missing)
        if self._shuffle_seed is not None:
            seeds = [(self._shuffle_seed, PASSAGE, key) for key in missing]
            texts = [shuffle_words(text, *seed) for text, seed in zip(texts, seeds, strict=True)]
        titles = self._store.titles(self.sources(missing))
        for key, ids in zip(missing, self._encoder.passage_ids(titles, texts), strict=True):
            self._ids[key] = np.array(ids, dtype=np.int32)
        return [self._ids[key] for key in keys]

    def parts(self, examples: Sequence[int]) -> list[np.ndarray]:
        """Return (2, T) bool for each example: which of the T vectors of its positive, of tokens or sentences, the
        evidence has, and which the rest; none if either has none. The title, which a distractor keeps, is of both."""
        by_token = self._encoder.settings.unit == "token"
        missing = [i for i in dict.fromkeys(examples) if i not in self._parts]
        rows = self._positives[missing]
        titles, texts = self._store.titles(rows), self._store.texts(rows)
        evidence = [self._evidence[i] or [] for i in missing]
        pieces = [
            alternate(spans, len(text)) if by_token else sentences(text)
            for spans, text in zip(evidence, texts, strict=True)
        ]
        passages = self._encoder.cut_passages(titles, texts, pieces)
        for i, spans, cut, passage in zip(missing, evidence, pieces, passages, strict=True):
            number = passage.sentence_of_token
            if by_token:
                number = number[~np.isin(passage.ids, self._encoder.special.cpu())]
                inside, title = number % 2 == 1, number < 0
            else:
                number = np.unique(number[number >= 0])
                inside, title = np.isin(number, overlapping(cut, spans)), number < 0
            parts = np.stack([inside & ~title, ~inside & ~title])
            self._parts[i] = (parts | title) & parts.any(1).all()
        return [self._parts[i] for i in examples]


def alternate(spans: Sequence[Span], length: int) -> list[Span]:
    """Return spans that hold every character of a text once: by turns, from 0, outside and inside of the `spans`."""
    edges = [0, *chain.from_iterable(merge(spans)), length]
    return [Span(*edge) for edge in pairwise(edges)]


def tokenise_questions(
    encoder: TextEncoder, questions: Sequence[str], *, shuffle_seed: int | None = None
) -> pa.ChunkedArray:
    """Return the token ids of questions, int32; with `shuffle_seed` their words are shuffled."""
    if shuffle_seed is not None:
        questions = [shuffle_words(text, shuffle_seed, QUESTION, i) for i, text in enumerate(questions)]
    parts = (questions[i : i + TOKENISED_AT_ONCE] for i in range(0, len(questions), TOKENISED_AT_ONCE))
    return pa.chunked_array([pa.array(encoder.question_ids(part), NUMBERS) for part in parts], NUMBERS)


def shuffle_words(text: str, *seed: int) -> str:
    """Put the words between spaces in random order, the same for the same seed (002, section 4.1)."""
    words = text.split(" ")
    return " ".join(words[i] for i in np.random.default_rng(seed).permutation(len(words)))
