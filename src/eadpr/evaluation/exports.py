"""Rankings in the formats of other tools: TREC run and qrels, DPR's retrieval JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from eadpr.evaluation.metrics import Judge, load_judge
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.rankings import read_rankings
from eadpr.storage.records import Question, Ranked

NOTHING = "-"  # stands for the passage of a question without a hit
FILES = {
    "run": "run.trec",
    "qrels-ids": "qrels-ids.trec",
    "qrels-answers": "qrels-answers.trec",
    "json": "retrieval.json",
}


def export(
    ranking: Path, records: Path, positives: Path, out: Path, *, tag: str, sets: Sequence[str], formats: Iterable[str]
) -> dict[Path, int]:
    """Write the files of `formats` to the folder `out` and return how many lines, or questions, each of them has.

    Files hold the ranked questions, or with `sets` those of these sets; the unranked among them count as wrong, as they
    do in the report. No file is replaced if one cannot be written.
    """
    with ExitStack() as stack:
        opened = {}
        for name in formats:
            temporary = stack.enter_context(files.replacing(out / FILES[name]))
            opened[name] = stack.enter_context(temporary.open("w", encoding="utf-8"))
        counts = dict.fromkeys(opened, 0)
        for question, rows, judge in read_judged(ranking, records, positives, sets):
            hits = judge(question, [row.passage_id for row in rows]).tolist()
            for name, file in opened.items():
                for piece in format_ranking(name, question, rows, hits, judge, tag):
                    if name == "json":  # one list of all questions
                        file.write(",\n" if counts[name] else "[")
                    file.write(piece)
                    counts[name] += 1
        if "json" in opened:
            opened["json"].write("]\n" if counts["json"] else "[]\n")
    return {out / FILES[name]: count for name, count in counts.items()}


def read_judged(
    ranking: Path, records: Path, positives: Path, sets: Sequence[str]
) -> Iterator[tuple[Question, list[Ranked], Judge]]:
    """Yield each question with its ranking and what judges it."""
    ranked = set(tables.read(ranking, Ranked, ["question_id"])["question_id"].to_pylist())
    wanted = set(read_question_ids(records / "question_sets.parquet", sets)) if sets else ranked
    if sets and ranked.isdisjoint(wanted):
        raise ValueError(f"{ranking} ranks no question of {', '.join(sets)}; give the ranking of these questions")
    asked = list(read_questions(records / "questions.parquet", ranked | wanted))
    judge = load_judge(records, positives, asked)
    for question, rows in zip(asked, read_rankings(ranking, judge.relevant), strict=True):
        if question.id in wanted:
            yield question, rows, judge


def format_ranking(
    name: str, question: Question, rows: Sequence[Ranked], hits: Sequence[bool], judge: Judge, tag: str
) -> Iterator[str]:
    """Yield a question's part of the file of a format.

    `run`: lines `question Q0 passage rank score tag`. `qrels-ids`: lines `question 0 passage grade` of the passages
    that the report's metrics by id count. `qrels-answers`: lines `question 0 passage 1` of its `hits` in top-k and
    MRR, of grade 0 for a question without a hit, which counts as wrong. `json`: a ranked question as DPR's retrieval
    results have it, with scores as strings.
    """
    if name == "run":
        for row, score in zip(rows, make_falling([row.score for row in rows]), strict=True):
            words = _check_word(question.id), "Q0", _check_word(row.passage_id), str(row.rank), score, _check_word(tag)
            yield " ".join(words) + "\n"
    elif name == "qrels-ids":
        for passage_id, grade in judge.relevant[question.id].items():
            yield f"{_check_word(question.id)} 0 {_check_word(passage_id)} {grade:g}\n"
    elif name == "qrels-answers":
        for row, hit in zip(rows, hits, strict=True):
            if hit:
                yield f"{_check_word(question.id)} 0 {_check_word(row.passage_id)} 1\n"
        if not any(hits):
            yield f"{_check_word(question.id)} 0 {NOTHING} 0\n"
    elif rows:
        contexts = []
        for row, hit in zip(rows, hits, strict=True):
            (passage,) = judge.store.passages(judge.store.rows([row.passage_id]))
            context = {"id": passage.id, "title": passage.title, "text": passage.text}
            contexts.append(context | {"score": str(np.float32(row.score)), "has_answer": hit and question.matchable})
        yield json.dumps({"question": question.question, "answers": question.answers, "ctxs": contexts}, indent=4)


def make_falling(scores: Iterable[float]) -> Iterator[str]:
    """Yield float32 scores as text, each below the previous one: TREC tools order by score and ignore the rank."""
    previous = np.float32(np.inf)
    for score in scores:
        previous = min(np.float32(score), np.nextafter(previous, np.float32(-np.inf)))
        yield str(previous)


def _check_word(word: str) -> str:
    if word.split() != [word]:
        raise ValueError(
            f"{word!r} is not one word, as TREC files need; rename the id or the tag, or give --format json"
        )
    return word
