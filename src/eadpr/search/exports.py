"""Rankings in the formats of other tools: TREC run and qrels, DPR's retrieval JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.grades import GIVEN, grades
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Positive, Question, Ranked
from eadpr.text.answers import AnswerMatcher

Group = tuple[str, list[Ranked]]
NOTHING = "-"  # the passage of a question that has none


@contextmanager
def together(out: Path) -> Iterator[Path]:
    """A folder for files that move to `out` when the block ends; none does where it raises."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=out) as made:
        yield Path(made)
        for path in sorted(Path(made).iterdir()):
            path.replace(out / path.name)


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


def write_id_qrels(records: Path, positives: Path, ranking: Path, out: Path, *, sets: Sequence[str] = ()) -> int:
    """Lines `question 0 passage grade` for the passages that the source calls relevant to the ranking's questions,
    given positives and supporting passages; returns their number. The report's metrics by id count these. With `sets`
    the questions are those of these sets, and the unranked among them count as wrong, as they do in the report."""

    def lines() -> Iterator[str]:
        for question, graded in _relevant(records, positives, ranking, sets):
            for passage_id, grade in graded.items():
                if grade != int(grade):
                    raise ValueError(
                        f"{records}: passage {passage_id} has grade {grade} for question {question.id}, and TREC's are"
                        " whole numbers; scale the grades in the source, or give --format without qrels-ids"
                    )
                yield _judged(question.id, passage_id, int(grade), positives)

    return _written(out, lines())


def write_answer_qrels(records: Path, positives: Path, ranking: Path, out: Path, *, sets: Sequence[str] = ()) -> int:
    """Lines `question 0 passage 1` for the ranked passages that the report's top-k and MRR count: those that hold an
    answer, or are relevant by id where no text can hold one; returns their number. A question without such a passage
    has a line of grade 0, so that it counts as wrong. `sets` as in `write_id_qrels`."""
    store, matcher = PassageStore(records / "passages.parquet"), AnswerMatcher()
    relevant = {question.id: (question, graded) for question, graded in _relevant(records, positives, ranking, sets)}

    def lines() -> Iterator[str]:
        unranked = dict.fromkeys(relevant)
        for question_id, rows in rankings(ranking):
            if question_id not in relevant:
                continue
            del unranked[question_id]
            question, graded = relevant[question_id]
            ids = [row.passage_id for row in rows]
            held = [one in graded for one in ids]
            if question.matchable:
                held = matcher.matches(question.answers, store.texts(store.rows(ids)), question.answer_kind).tolist()
            found = [passage_id for passage_id, hit in zip(ids, held, strict=True) if hit]
            yield from (_judged(question_id, passage_id, 1, ranking) for passage_id in found)
            if not found:
                yield _judged(question_id, ids[0], 0, ranking)
        yield from (_judged(question_id, NOTHING, 0, ranking) for question_id in unranked)

    return _written(out, lines())


def _judged(question_id: str, passage_id: str, grade: int, where: Path) -> str:
    question = _trec_word(question_id, f"question_id in {where}")
    return f"{question} 0 {_trec_word(passage_id, f'passage_id in {where}')} {grade}\n"


def _relevant(
    records: Path, positives: Path, ranking: Path, sets: Sequence[str]
) -> Iterator[tuple[Question, dict[str, float]]]:
    """The ranking's questions, or those of the sets, with what the source calls relevant, by grade."""
    questions, graded = _questions(ranking, records), grades(records)
    if sets:
        ids = read_question_ids(records / "question_sets.parquet", sets)
        ranked = questions.keys()
        questions = {question.id: question for question in read_questions(records / "questions.parquet", ids)}
        if not ranked & questions.keys():
            raise ValueError(f"{ranking} ranks no question of {', '.join(sets)}; give the ranking of these questions")
    given: dict[str, dict[str, float]] = {}
    for row in tables.rows(positives, Positive):
        if row.source == GIVEN and row.question_id in questions:
            given.setdefault(row.question_id, {})[row.passage_id] = 1.0
    for key, question in questions.items():
        yield question, dict.fromkeys(question.hops or (), 1.0) | given.get(key, {}) | graded.get(key, {})


def _questions(ranking: Path, records: Path) -> dict[str, Question]:
    """Those of the ranking, by id."""
    asked = {question_id for question_id, _ in rankings(ranking)}
    questions = {question.id: question for question in read_questions(records / "questions.parquet", asked)}
    if unknown := sorted(asked - set(questions)):
        raise ValueError(f"{ranking}: question_id {unknown[0]!r} is not in {records / 'questions.parquet'}")
    return questions


def write_retrieval_json(ranking: Path, records: Path, out: Path) -> int:
    """DPR's retrieval results: a list, indented by 4, scores as strings; returns the number of questions.

    Streams: memory is that of the questions and of one ranking.
    """
    questions = _questions(ranking, records)
    store, matcher = PassageStore(records / "passages.parquet"), AnswerMatcher()
    entries = (_entry(questions[question_id], rows, store, matcher) for question_id, rows in rankings(ranking))
    texts = (json.dumps(entry, indent=4).replace("\n", "\n    ") for entry in entries)
    pieces = (f"{',' if number else '['}\n    {text}" for number, text in enumerate(texts))
    return _written(out, pieces, end="\n]" if questions else "[]")


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
