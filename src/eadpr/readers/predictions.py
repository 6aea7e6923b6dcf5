"""Readers' answers, as a record and as HotpotQA's official prediction file."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.formats.hotpot import passage_id
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Context, Origin, SupportingFact


class Sentence(NamedTuple):
    """A sentence of a passage, by its index in `spans.sentences_of`."""

    passage_id: str
    sentence: int


class Prediction(NamedTuple):
    """A reader's answer to a question from the first `top_k` passages of a ranking, or paths.

    An extractive reader gives its place: `start` and `end` are offsets into the text of `passage_id`, and
    `passage_score` is the logit of that passage or path. `answer_score` is a log-probability: of the span among all
    spans of the passage, of the generated words, or, from paths, of the answer among all answers. No answer is
    an empty one. Yes and no have no place. `support` are the supporting sentences, None for a reader of passages.
    """

    question_id: str
    top_k: int
    answer: str
    answer_score: float | None = None
    passage_id: str | None = None
    passage_score: float | None = None
    start: int | None = None
    end: int | None = None
    support: list[Sentence] | None = None


def read_named_facts(records: Path, ids: Collection[str]) -> dict[str, list[SupportingFact]]:
    """Return the supporting facts of HotpotQA's questions, by question, with titles as in their file."""
    ids, origins = frozenset(ids), tables.rows(records / "origins.parquet", Origin)
    return {origin.question_id: origin.facts for origin in origins if origin.question_id in ids and origin.facts}


def official_titles(records: Path, ids: Collection[str]) -> dict[tuple[str, str], str]:
    """Return the titles of passages as in the questions' files, by question and passage. Those may have HTML's
    entities, and the official script compares titles as they are."""
    ids = frozenset(ids)
    titles = {
        (context.question_id, context.passage_id): context.title
        for context in tables.rows(records / "contexts.parquet", Context)
        if context.question_id in ids and context.title is not None
    }
    for question_id, facts in read_named_facts(records, ids).items():
        titles |= {(question_id, passage_id(fact.page)): fact.page for fact in facts}
    return titles


def write_official(
    path: Path, predictions: Iterable[Prediction], titles: Mapping[tuple[str, str], str], store: PassageStore
) -> None:
    """Write HotpotQA's prediction file, which other programs score:
    {"answer": {question id: answer}, "sp": {question id: [[title, number of a sentence, from 0], ...]}}

    Passages without one of the `titles` have their title in the store.
    """
    answers: dict[str, str] = {}
    support: dict[str, list[tuple[str, int]]] = {}
    for row in predictions:
        answers[row.question_id] = row.answer
        keys = [(row.question_id, fact.passage_id) for fact in row.support]
        own = store.titles(store.rows([passage_id for _, passage_id in keys]))
        facts = zip(keys, own, row.support, strict=True)
        support[row.question_id] = [(titles.get(key, title), fact.sentence) for key, title, fact in facts]
    files.write_json(path, {"answer": answers, "sp": support})
