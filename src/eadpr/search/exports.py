"""Rankings in the formats of other tools: TREC run and qrels, DPR's retrieval JSON."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np

from eadpr import files, tables
from eadpr.passages import PassageStore
from eadpr.questions import selected
from eadpr.records import Positive, Question, Ranked
from eadpr.text import AnswerMatcher

Group = tuple[str, list[Ranked]]


def rankings(path: Path) -> Iterator[Group]:
    """Question id and its rows, rank 1 first, question by question."""
    for question_id, rows in groupby(tables.rows(path, Ranked), key=attrgetter("question_id")):
        yield question_id, list(rows)


def write_trec_run(ranking: Path, out: Path, *, tag: str) -> int:
    """Lines `question Q0 passage rank score tag`; returns their number.

    TREC tools order by score and forget the rank. So that they see our order, a score that is not below the one before
    it is lowered to the next float32.
    """
    _trec_word(tag, "the tag")

    def lines() -> Iterator[str]:
        for question_id, rows in rankings(ranking):
            question = _trec_word(question_id, f"question_id in {ranking}")
            for row, score in zip(rows, falling([row.score for row in rows]), strict=True):
                passage = _trec_word(row.passage_id, f"passage_id in {ranking}")
                yield f"{question} Q0 {passage} {row.rank} {score} {tag}\n"

    return _written(out, lines())


def write_trec_qrels(positives: Path, ranking: Path, out: Path) -> int:
    """Lines `question 0 passage 1` for the positives of the ranking's questions; returns their number."""
    asked = {question_id for question_id, _ in rankings(ranking)}
    words = (
        [_trec_word(getattr(row, name), f"{name} in {positives}") for name in ("question_id", "passage_id")]
        for row in tables.rows(positives, Positive)
        if row.question_id in asked
    )
    return _written(out, (f"{question} 0 {passage} 1\n" for question, passage in words))


def write_retrieval_json(ranking: Path, records: Path, out: Path) -> int:
    """DPR's retrieval results: a list, indented by 4, scores as strings; returns the number of questions.

    Streams: memory is that of the questions and of one ranking.
    """
    asked = {question_id for question_id, _ in rankings(ranking)}
    questions = {question.id: question for question in selected(records / "questions.parquet", asked)}
    if unknown := sorted(asked - set(questions)):
        raise ValueError(f"{ranking}: question_id {unknown[0]!r} is not in {records / 'questions.parquet'}")
    store, matcher = PassageStore(records / "passages.parquet"), AnswerMatcher()
    entries = (_entry(questions[question_id], rows, store, matcher) for question_id, rows in rankings(ranking))
    texts = (json.dumps(entry, indent=4).replace("\n", "\n    ") for entry in entries)
    pieces = (f"{',' if number else '['}\n    {text}" for number, text in enumerate(texts))
    return _written(out, pieces, end="\n]" if asked else "[]")


def _written(out: Path, pieces: Iterable[str], end: str = "") -> int:
    """Write the pieces to a file, then its `end`; returns their number."""
    count = 0
    with files.replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        for piece in pieces:
            file.write(piece)
            count += 1
        file.write(end)
    return count


def _entry(question: Question, rows: list[Ranked], store: PassageStore, matcher: AnswerMatcher) -> dict[str, object]:
    places = store.rows([row.passage_id for row in rows])
    texts = store.texts(places)
    held = matcher.matches(question.answers, texts, question.answer_kind).tolist()
    columns = zip(rows, store.titles(places), texts, held, strict=True)
    contexts = [
        {"id": row.passage_id, "title": title, "text": text, "score": _shortest(row.score), "has_answer": has_answer}
        for row, title, text, has_answer in columns
    ]
    return {"question": question.question, "answers": question.answers, "ctxs": contexts}


def falling(scores: Iterable[float]) -> Iterator[str]:
    """float32 scores as text, each below the one before it."""
    above = np.float32(np.inf)
    for score in scores:
        above = min(np.float32(score), np.nextafter(above, np.float32(-np.inf)))
        yield _shortest(above)


def _shortest(score: float) -> str:
    """The shortest digits that give the same float32."""
    return str(np.float32(score))


def _trec_word(word: str, name: str) -> str:
    if word.split() != [word]:
        raise ValueError(
            f"{name} is {word!r}: TREC files separate their columns by white space, so an id must be one word; "
            "rename it in the source, or export the JSON format"
        )
    return word
