"""What readers answer, as a record and as HotpotQA's official prediction file."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.formats.hotpot import passage_id
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Context, Origin, SupportingFact


class Sentence(NamedTuple):
    """`sentence` is the index of one of `spans.sentences_of` the passage."""

    passage_id: str
    sentence: int


class Prediction(NamedTuple):
    """What a reader answers to a question from the first `top_k` passages of a ranking, or paths.

    An extractive reader says where: `start` and `end` are offsets into the text of `passage_id`, `passage_score` is the
    logit of that passage, or path. `answer_score` is the answer's log-probability: of the span among all of the
    passage, or of the words that were written, or, from paths, among all answers; of MDR's reader a weighted sum of
    logits. An answer that was not found is empty, yes and no stand nowhere, and one that begins in a title has no
    offsets. `support` are the sentences that the answer rests on, None of a reader of passages.
    """

    made_by = "read"
    question_id: str
    top_k: int
    answer: str
    answer_score: float | None = None
    passage_id: str | None = None
    passage_score: float | None = None
    start: int | None = None
    end: int | None = None
    support: list[Sentence] | None = None


def named_facts(records: Path, ids: Collection[str]) -> dict[str, list[SupportingFact]]:
    """The supporting facts of HotpotQA's questions, by question, with titles as their file writes them."""
    wanted, origins = frozenset(ids), tables.rows(records / "origins.parquet", Origin)
    return {origin.question_id: origin.facts for origin in origins if origin.question_id in wanted and origin.facts}


class Titles:
    """A passage's title as the question's file writes it, which may have HTML's entities: the official script compares
    titles as they stand. Of a passage that the file does not name, the corpus's."""

    def __init__(self, records: Path, ids: Collection[str]) -> None:
        wanted = frozenset(ids)
        self._store = PassageStore(records / "passages.parquet")
        self._given: dict[tuple[str, str], str] = {}
        for context in tables.rows(records / "contexts.parquet", Context):
            if context.question_id in wanted and context.title is not None:
                self._given[context.question_id, context.passage_id] = context.title
        for question_id, facts in named_facts(records, ids).items():
            self._given |= {(question_id, passage_id(fact.page)): fact.page for fact in facts}

    def __call__(self, question_id: str, passage_id: str) -> str:
        given = self._given.get((question_id, passage_id))
        return self._store.titles(self._store.rows([passage_id]))[0] if given is None else given


def write_official(path: Path, predictions: Iterable[Prediction], title: Callable[[str, str], str]) -> int:
    """Write HotpotQA's prediction file, which other programs score:
    {"answer": {question id: answer}, "sp": {question id: [[title, number of a sentence, from 0], ...]}}

    `title` is that of (question id, passage id); returns the number of questions.
    """
    answers: dict[str, str] = {}
    support: dict[str, list[tuple[str, int]]] = {}
    for row in predictions:
        if row.question_id in answers:
            raise ValueError(f"question {row.question_id!r} is predicted twice; write one prediction for each")
        answers[row.question_id] = row.answer
        support[row.question_id] = [(title(row.question_id, fact.passage_id), fact.sentence) for fact in row.support]
    files.write_json(path, {"answer": answers, "sp": support})
    return len(answers)
