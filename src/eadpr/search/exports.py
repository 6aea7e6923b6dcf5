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

NOTHING = "-"  # stands for the passage of a question without a ranking


@contextmanager
def replacing_together(out: Path) -> Iterator[Path]:
    """Provide a folder for files that move to `out` when the block ends; none does if it raises."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=out) as temporary:
        yield Path(temporary)
        for path in sorted(Path(temporary).iterdir()):
            path.replace(out / path.name)


def read_rankings(path: Path) -> Iterator[tuple[str, list[Ranked]]]:
    """Yield each question id with its rows, rank 1 first."""
    for question_id, rows in groupby(tables.rows(path, Ranked), key=attrgetter("question_id")):
        yield question_id, list(rows)


def write_trec_run(ranking: Path, out: Path, *, tag: str) -> int:
    """Write lines `question Q0 passage rank score tag` and return their number.

    TREC tools order by score and ignore the rank. So that they see our order, a score that is not below the previous
    one is lowered to the next float32.
    """
    _check_word(tag, "the tag")

    def lines() -> Iterator[str]:
        for question_id, rows in read_rankings(ranking):
            question = _check_word(question_id, f"question_id in {ranking}")
            for row, score in zip(rows, make_falling([row.score for row in rows]), strict=True):
                passage = _check_word(row.passage_id, f"passage_id in {ranking}")
                yield f"{question} Q0 {passage} {row.rank} {score} {tag}\n"

    return _write(out, lines())


def write_id_qrels(records: Path, positives: Path, ranking: Path, out: Path, *, sets: Sequence[str] = ()) -> int:
    """Write lines `question 0 passage grade` and return their number.

    The passages are relevant to the ranking's questions by the source, as given positives or supporting passages; the
    report's metrics by id count these. With `sets` the questions are those of these sets, and the
    unranked among them count as wrong, as they do in the report.
    """

    def lines() -> Iterator[str]:
        for question, relevant in _read_relevant(records, positives, ranking, sets):
            for passage_id, grade in relevant.items():
                if grade != int(grade):
                    raise ValueError(
                        f"{records}: passage {passage_id} has grade {grade} for question {question.id}, and TREC's are"
                        " whole numbers; scale the grades in the source, or give --format without qrels-ids"
                    )
                yield _qrels_line(question.id, passage_id, int(grade), positives)

    return _write(out, lines())


def write_answer_qrels(records: Path, positives: Path, ranking: Path, out: Path, *, sets: Sequence[str] = ()) -> int:
    """Write lines `question 0 passage 1` for the ranked passages that the report's top-k and MRR count; returns their
    number.

    These hold an answer, or are relevant by id if no text can hold one. A question without such a passage has a line of
    grade 0, so that it counts as wrong. `sets` as in `write_id_qrels`.
    """
    store, matcher = PassageStore(records / "passages.parquet"), AnswerMatcher()
    judged = {question.id: (question, ids) for question, ids in _read_relevant(records, positives, ranking, sets)}

    def lines() -> Iterator[str]:
        unranked = dict.fromkeys(judged)
        for question_id, rows in read_rankings(ranking):
            if question_id not in judged:
                continue
            del unranked[question_id]
            question, relevant = judged[question_id]
            ids = [row.passage_id for row in rows]
            if question.matchable:
                texts = store.texts(store.rows(ids))
                hits = matcher.matches(question.answers, texts, question.answer_kind).tolist()
            else:
                hits = [passage_id in relevant for passage_id in ids]
            for passage_id, hit in zip(ids, hits, strict=True):
                if hit:
                    yield _qrels_line(question_id, passage_id, 1, ranking)
            if not any(hits):
                yield _qrels_line(question_id, ids[0], 0, ranking)
        for question_id in unranked:
            yield _qrels_line(question_id, NOTHING, 0, ranking)

    return _write(out, lines())


def _qrels_line(question_id: str, passage_id: str, grade: int, path: Path) -> str:
    question = _check_word(question_id, f"question_id in {path}")
    return f"{question} 0 {_check_word(passage_id, f'passage_id in {path}')} {grade}\n"


def _read_relevant(
    records: Path, positives: Path, ranking: Path, sets: Sequence[str]
) -> Iterator[tuple[Question, dict[str, float]]]:
    """Yield the questions of the ranking or the sets, each with the grades of the passages that are relevant by id."""
    questions, graded = _read_ranked_questions(ranking, records), grades(records)
    if sets:
        ranked = questions.keys()
        ids = read_question_ids(records / "question_sets.parquet", sets)
        questions = {question.id: question for question in read_questions(records / "questions.parquet", ids)}
        if not ranked & questions.keys():
            raise ValueError(f"{ranking} ranks no question of {', '.join(sets)}; give the ranking of these questions")
    relevant: dict[str, dict[str, float]] = {}
    for key, question in questions.items():
        relevant[key] = dict.fromkeys(question.hops or (), 1.0)
    for row in tables.rows(positives, Positive):
        if row.source == GIVEN and row.question_id in questions:
            relevant[row.question_id][row.passage_id] = 1.0
    for key, question in questions.items():
        yield question, relevant[key] | graded.get(key, {})


def _read_ranked_questions(ranking: Path, records: Path) -> dict[str, Question]:
    ids = {question_id for question_id, _ in read_rankings(ranking)}
    questions = {question.id: question for question in read_questions(records / "questions.parquet", ids)}
    if unknown := sorted(ids - set(questions)):
        raise ValueError(f"{ranking}: question_id {unknown[0]!r} is not in {records / 'questions.parquet'}")
    return questions


def write_retrieval_json(ranking: Path, records: Path, out: Path) -> int:
    """Write DPR's retrieval results, a list indented by 4 with scores as strings, and return the number of questions.

    The list is streamed: memory holds the questions and one ranking.
    """
    questions = _read_ranked_questions(ranking, records)
    store, matcher = PassageStore(records / "passages.parquet"), AnswerMatcher()

    def pieces() -> Iterator[str]:
        opening = "["
        for question_id, rows in read_rankings(ranking):
            entry = json.dumps(_retrieval_entry(questions[question_id], rows, store, matcher), indent=4)
            yield f"{opening}\n    " + entry.replace("\n", "\n    ")
            opening = ","

    return _write(out, pieces(), end="\n]" if questions else "[]")


def _retrieval_entry(
    question: Question, ranking: list[Ranked], store: PassageStore, matcher: AnswerMatcher
) -> dict[str, object]:
    rows = store.rows([row.passage_id for row in ranking])
    titles, texts = store.titles(rows), store.texts(rows)
    hits = matcher.matches(question.answers, texts, question.answer_kind).tolist()
    contexts = [
        {"id": row.passage_id, "title": title, "text": text, "score": _shortest(row.score), "has_answer": hit}
        for row, title, text, hit in zip(ranking, titles, texts, hits, strict=True)
    ]
    return {"question": question.question, "answers": question.answers, "ctxs": contexts}


def _write(out: Path, pieces: Iterable[str], end: str = "") -> int:
    """Write the pieces and the `end` to a file and return the number of pieces."""
    count = 0
    with files.replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        for piece in pieces:
            file.write(piece)
            count += 1
        file.write(end)
    return count


def make_falling(scores: Iterable[float]) -> Iterator[str]:
    """Yield float32 scores as text, each below the previous one."""
    previous = np.float32(np.inf)
    for score in scores:
        previous = min(np.float32(score), np.nextafter(previous, np.float32(-np.inf)))
        yield _shortest(previous)


def _shortest(score: float) -> str:
    """Return the shortest digits that give the same float32."""
    return str(np.float32(score))


def _check_word(word: str, name: str) -> str:
    if word.split() != [word]:
        raise ValueError(
            f"{name} is {word!r}: TREC files separate their columns by white space, so an id must be one word; "
            "rename it in the source, or export the JSON format"
        )
    return word
