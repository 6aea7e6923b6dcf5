"""Rankings in the formats of other tools: TREC run and qrels, DPR's retrieval JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

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


class JudgedRanking(NamedTuple):
    """A question's ranking, which passages are hits as the report counts them in top-k and MRR, and what judged it."""

    question: Question
    ranking: list[Ranked]
    hits: list[bool]
    judge: Judge


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
        for judged in read_judged(ranking, records, positives, sets):
            pieces = {
                "run": list_run(judged, tag),
                "qrels-ids": list_relevant(judged),
                "qrels-answers": list_hits(judged),
                "json": describe_ranking(judged),
            }
            for name, file in opened.items():
                for piece in pieces[name]:
                    if name == "json":  # one list of all questions
                        file.write(",\n" if counts[name] else "[")
                    file.write(piece)
                    counts[name] += 1
        if "json" in opened:
            opened["json"].write("]\n" if counts["json"] else "[]\n")
    return {out / FILES[name]: count for name, count in counts.items()}


def read_judged(ranking: Path, records: Path, positives: Path, sets: Sequence[str]) -> Iterator[JudgedRanking]:
    ranked = set(tables.read(ranking, Ranked, ["question_id"])["question_id"].to_pylist())
    wanted = set(read_question_ids(records / "question_sets.parquet", sets)) if sets else ranked
    if sets and ranked.isdisjoint(wanted):
        raise ValueError(f"{ranking} ranks no question of {', '.join(sets)}; give the ranking of these questions")
    asked = list(read_questions(records / "questions.parquet", ranked | wanted))
    judge = load_judge(records, positives, asked)
    for question, rows in zip(asked, read_rankings(ranking, judge.relevant), strict=True):
        if question.id in wanted:
            hits = judge(question, [row.passage_id for row in rows]).tolist()
            yield JudgedRanking(question, rows, hits, judge)


def list_run(judged: JudgedRanking, tag: str) -> Iterator[str]:
    """Yield lines `question Q0 passage rank score tag`. TREC tools order by score and ignore the rank: a score that is
    not below the previous one is lowered to the next float32."""
    question_id = _check_word(judged.question.id)
    for row, score in zip(judged.ranking, make_falling([row.score for row in judged.ranking]), strict=True):
        yield f"{question_id} Q0 {_check_word(row.passage_id)} {row.rank} {score} {_check_word(tag)}\n"


def list_relevant(judged: JudgedRanking) -> Iterator[str]:
    """Yield lines `question 0 passage grade` of the passages that the report's metrics by id count."""
    for passage_id, grade in judged.judge.relevant[judged.question.id].items():
        yield f"{_check_word(judged.question.id)} 0 {_check_word(passage_id)} {grade:g}\n"


def list_hits(judged: JudgedRanking) -> Iterator[str]:
    """Yield lines `question 0 passage 1` of the hits, of grade 0 for a question without a hit, which counts as
    wrong."""
    hits = [row.passage_id for row, hit in zip(judged.ranking, judged.hits, strict=True) if hit]
    for passage_id in hits or [NOTHING]:
        yield f"{_check_word(judged.question.id)} 0 {_check_word(passage_id)} {int(bool(hits))}\n"


def describe_ranking(judged: JudgedRanking) -> Iterator[str]:
    """Yield a ranked question as DPR's retrieval results have it, with scores as strings."""
    question, store = judged.question, judged.judge.store
    rows = store.rows([row.passage_id for row in judged.ranking])
    contexts = []
    for row, title, text, hit in zip(judged.ranking, store.titles(rows), store.texts(rows), judged.hits, strict=True):
        score, hit = str(np.float32(row.score)), hit and question.matchable
        contexts.append({"id": row.passage_id, "title": title, "text": text, "score": score, "has_answer": hit})
    if contexts:
        yield json.dumps({"question": question.question, "answers": question.answers, "ctxs": contexts}, indent=4)


def make_falling(scores: Iterable[float]) -> Iterator[str]:
    """Yield float32 scores as text, each below the previous one."""
    previous = np.float32(np.inf)
    for score in scores:
        previous = min(np.float32(score), np.nextafter(previous, np.float32(-np.inf)))
        yield str(previous)


def _check_word(word: str) -> str:
    if word.split() != [word]:
        raise ValueError(
            f"{word!r} is not one word, and TREC files separate their columns by white space; rename the id or the tag,"
            " or give --format json"
        )
    return word
