"""The sentence of each passage that a question matches, by any encoder."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from eadpr.library.scorers import load_encoders
from eadpr.library.texts import as_rows
from eadpr.search.pointing import embed_questions, score_passages
from eadpr.storage.records import Passage
from eadpr.training.encoder import Encoders


class ScoredSentence(NamedTuple):
    """A sentence at `start` to `end` of its passage's text, in characters."""

    start: int
    end: int
    text: str
    score: float


class Pointed(NamedTuple):
    """The sentences of a passage that the encoder reads, in order; `cut` counts those beyond its longest input.

    `best` is the first one of the highest score, None where the text is blank or all of it is cut.
    """

    best: ScoredSentence | None
    sentences: list[ScoredSentence]
    cut: int


def point(model: Any, question: str, passages: Iterable[Mapping[str, str] | str]) -> list[Pointed]:
    """Score every sentence of `passages`, texts or rows of `text` and perhaps `title`, against the question.

    `model` is the folder or hub name of an encoder, an arm's too, or a loaded SentenceTransformer. A passage is encoded
    whole, once. Where tokens are the encoder's unit, a sentence scores as a passage of its tokens alone would: for each
    token of the question the highest cosine with one of the sentence's, on average. Else its vector is the mean of its
    tokens' states, with the layers and the similarity that the model states. Raises ValueError for any other model.
    """
    texts = ((row.text("title", empty=True), row.text("text", empty=True)) for row in as_rows(passages))
    records = [Passage(str(number), *title_and_text, None) for number, title_and_text in enumerate(texts)]
    if isinstance(model, str | Path):
        return point_by(load_encoders(str(model)), question, records)
    if not hasattr(model, "save_pretrained"):
        raise ValueError(f"a {type(model).__name__} is no encoder; give a folder, a name or a SentenceTransformer")
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return point_by(load_encoders(folder), question, records)


def point_by(encoders: Encoders, question: str, passages: Sequence[Passage]) -> list[Pointed]:
    """Return what `point` does, of records."""
    questions = embed_questions(encoders.question, encoders.question.question_ids([question]))
    numbers, pointed = np.arange(len(passages)), dict[int, Pointed]()

    def read(rows: Sequence[int]) -> list[Passage]:
        return [passages[row] for row in rows]

    for (row,), spans, (scores,) in score_passages(questions, numbers * 0, numbers, read, encoders.passage):
        pairs = zip(spans, scores.tolist(), strict=True)
        text = passages[row].text
        sentences = [ScoredSentence(*span, text[slice(*span)], score) for span, score in pairs if score == score]
        best = max(sentences, key=lambda sentence: sentence.score, default=None)
        pointed[row] = Pointed(best, sentences, len(spans) - len(sentences))
    return [pointed[row] for row in numbers.tolist()]
