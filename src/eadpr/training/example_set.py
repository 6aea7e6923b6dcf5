"""The examples of one role in memory, by position, and the inputs they are made of, tokenised when first needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Distractor, Example
from eadpr.training.config import OTHERS
from eadpr.training.encoder import TextEncoder

TOKENISED_AT_ONCE = 4096
QUESTION, _PASSAGE = 0, 1  # tell the random streams of one seed apart
KEPT = 1_000_000  # tokenised passages, about 300 bytes each


class ExampleSet(NamedTuple):
    """Parallel lists, one entry per example, in their order. Passages are rows of passages.parquet.

    `others`: the question's other positives. `times`: how often an epoch asks the question, at least once. `placebos`:
    None for an example that has none, and where no loss needs them.
    """

    question_ids: list[str]
    questions: list[str]
    answers: list[list[str]]
    kinds: list[str]
    positives: np.ndarray
    negatives: list[np.ndarray]
    others: list[np.ndarray]
    distractors: list[list[str]]
    times: np.ndarray
    placebos: list[str | None] | None = None


def read_examples(
    folder: Path,
    records: Path,
    store: PassageStore,
    role: str,
    *,
    distractors: bool,
    placebos: bool = False,
    upsample: Mapping[str, int] | None = None,
) -> ExampleSet:
    """The examples of a role; their distractors by level, none unless `distractors`.

    `upsample` gives `times` by question set; questions with 0 are left out. A question takes the most of its sets, 1
    (or `others`) where none of them is named. Validation questions of which none is in a set of `upsample` are all
    taken: they are of `sets.validation`, which nobody trains on. Raises ValueError for a set that does not exist.
    """
    named = dict(upsample or {})
    others = named.pop(OTHERS, 1)
    times = times_asked(records / "question_sets.parquet", named)
    rows = [row for row in tables.rows(folder / "examples.parquet", Example) if row.role == role]
    if role == "validation" and not any(row.question_id in times for row in rows):
        others = 1
    rows = [row for row in rows if times.get(row.question_id, others)]
    ids = [row.question_id for row in rows]
    asked = {question.id: question for question in read_questions(records / "questions.parquet", ids)}
    for row in rows:
        if row.question_id not in asked:
            raise ValueError(f"{folder}: question_id {row.question_id!r} is not in {records}; run `dvc repro`")
    own = [asked[row.question_id] for row in rows]
    texts = _texts(folder / "distractors.parquet") if distractors else {}
    for row in rows if distractors else ():
        if any((row.question_id, row.positive, level) not in texts for level in row.distractors):
            raise ValueError(f"{folder}: it lacks a distractor of question {row.question_id!r}; run `dvc repro`")
    cut_elsewhere = _texts(folder / "placebos.parquet") if placebos else {}
    return ExampleSet(
        question_ids=ids,
        questions=[question.question for question in own],
        answers=[question.answers for question in own],
        kinds=[question.answer_kind for question in own],
        positives=store.rows([row.positive for row in rows]),
        negatives=[store.rows(row.negatives) for row in rows],
        others=[store.rows(row.others) for row in rows],
        distractors=[
            [texts[row.question_id, row.positive, level] for level in row.distractors] if distractors else []
            for row in rows
        ],
        times=np.array([times.get(row.question_id, others) for row in rows], dtype=np.int64),
        placebos=[cut_elsewhere.get((row.question_id, row.positive, 0)) for row in rows] if placebos else None,
    )


def _texts(path: Path) -> dict[tuple[str, str, int], str]:
    """By question, positive and level."""
    texts: dict[tuple[str, str, int], str] = {}
    for found in tables.rows(path, Distractor):
        key = found.question_id, found.passage_id, found.level
        if key in texts:
            raise ValueError(f"{path}: two texts of question {key[0]!r}, passage {key[1]!r}; run `dvc repro`")
        texts[key] = found.text
    return texts


def times_asked(question_sets: Path, upsample: Mapping[str, int]) -> dict[str, int]:
    """How often an epoch asks each question of the named sets."""
    times: dict[str, int] = {}
    for name, most in upsample.items():
        for question_id in read_question_ids(question_sets, [name]):
            times[question_id] = max(most, times.get(question_id, 0))
    return times


def shuffled(text: str, seed: int, *key: int) -> str:
    """The words between spaces in random order, for the same key always the same (002, section 4.1)."""
    words = text.split(" ")
    return " ".join(words[i] for i in np.random.default_rng([seed, *key]).permutation(len(words)))


class PassageInputs:
    """Passages, distractors and placebos by key: a passage's row, or a number from `len(store)` for a distractor or the
    placebo of an example.

    With `shuffle_seed` the words of every text, not of its title, are shuffled in the inputs.
    """

    def __init__(
        self, examples: ExampleSet, store: PassageStore, encoder: TextEncoder, *, shuffle_seed: int | None = None
    ) -> None:
        self._shuffle_seed = shuffle_seed
        self._examples = examples
        self._store = store
        self._encoder = encoder
        self._ids: dict[int, np.ndarray] = {}
        self.levels = max((len(texts) for texts in examples.distractors), default=0) or 1
        self._keys = self.levels + (examples.placebos is not None)  # of an example

    def distractor_key(self, example: int, level: int) -> int:
        return len(self._store) + example * self._keys + level

    def placebo_key(self, example: int) -> int:
        return self.distractor_key(example, self.levels)

    def _example(self, key: int) -> tuple[int, int]:
        return divmod(key - len(self._store), self._keys)

    def texts(self, keys: Sequence[int]) -> list[str]:
        return [self._text(key) for key in keys]

    def _text(self, key: int) -> str:
        if key < len(self._store):
            return self._store.texts([key])[0]
        example, level = self._example(key)
        if level == self.levels:
            return self._examples.placebos[example]
        return self._examples.distractors[example][level]

    def _row(self, key: int) -> int:
        """The passage a key stems from: itself, or the positive that the distractor or placebo was made of."""
        return key if key < len(self._store) else int(self._examples.positives[self._example(key)[0]])

    def sources(self, keys: Sequence[int]) -> np.ndarray:
        return np.array([self._row(key) for key in keys], dtype=np.int64)

    def ids(self, keys: Sequence[int]) -> list[np.ndarray]:
        """Token ids of each key; a distractor or placebo has its positive's title."""
        if len(self._ids) > KEPT:
            self._ids.clear()
        missing = list(dict.fromkeys(key for key in keys if key not in self._ids))
        for first in range(0, len(missing), TOKENISED_AT_ONCE):
            part = missing[first : first + TOKENISED_AT_ONCE]
            titles = self._store.titles([self._row(key) for key in part])
            texts = self.texts(part)
            if self._shuffle_seed is not None:
                texts = [
                    shuffled(text, self._shuffle_seed, _PASSAGE, key) for text, key in zip(texts, part, strict=True)
                ]
            for key, ids in zip(part, self._encoder.passage_ids(titles, texts), strict=True):
                self._ids[key] = np.array(ids, dtype=np.int32)
        return [self._ids[key] for key in keys]
