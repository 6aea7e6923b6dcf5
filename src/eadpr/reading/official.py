"""HotpotQA's official prediction file, which other programs score.

{"answer": {question id: answer}, "sp": {question id: [[title, number of a sentence, from 0], ...]}}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from eadpr import files, questions, tables
from eadpr.corpus.hotpot import passage_id
from eadpr.passages import PassageStore
from eadpr.reading.records import Fact, Prediction, SupportedAnswer
from eadpr.records import Context, Origin


def named_facts(records: Path, ids: Collection[str]) -> dict[str, list[Fact]]:
    """The supporting facts of HotpotQA's questions, by question, with titles as their file writes them."""
    hotpot = {question.id for question in questions.selected(records / "questions.parquet", ids) if question.hops}
    found = {}
    for origin in tables.rows(records / "origins.parquet", Origin):
        if origin.question_id in hotpot and (facts := json.loads(origin.item or "{}").get("supporting_facts")):
            found[origin.question_id] = [(title, sentence) for title, sentence in facts]
    return found


class Titles:
    """A passage's title as the question's file writes it, which may have HTML's entities: the official script compares
    titles as they stand. Of a passage that the file does not name, the corpus's."""

    def __init__(self, records: Path, ids: Collection[str]) -> None:
        wanted = frozenset(ids)
        self._store = PassageStore(records / "passages.parquet")
        self._given: dict[tuple[str, str], str] = {}
        for context in tables.rows(records / "contexts.parquet", Context):
            if context.question_id in wanted:
                title = (json.loads(context.source_key) if context.source_key else {}).get("title")
                if title is not None:  # null where it is the passage's
                    self._given[context.question_id, context.passage_id] = title
        for question_id, facts in named_facts(records, ids).items():
            self._given |= {(question_id, passage_id(title)): title for title, _ in facts}

    def __call__(self, question_id: str, passage_id: str) -> str:
        given = self._given.get((question_id, passage_id))
        return self._store.titles(self._store.rows([passage_id]))[0] if given is None else given


def write_official(
    path: Path, predictions: Iterable[Prediction | SupportedAnswer], title: Callable[[str, str], str]
) -> int:
    """`title` is that of (question id, passage id); returns the number of questions."""
    answers: dict[str, str] = {}
    support: dict[str, list[Fact]] = {}
    for row in predictions:
        if row.question_id in answers:
            raise ValueError(f"question {row.question_id!r} is predicted twice; write one prediction for each")
        answers[row.question_id] = row.answer
        support[row.question_id] = [(title(row.question_id, fact.passage_id), fact.sentence) for fact in row.support]
    files.write_json(path, {"answer": answers, "sp": support})
    return len(answers)
