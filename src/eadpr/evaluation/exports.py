"""Rankings as TREC files: a run, and judgements by passage id and by answer."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from eadpr.evaluation.metrics import load_judge
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.rankings import read_rankings
from eadpr.storage.records import Ranked

FILES = ("run.trec", "qrels-ids.trec", "qrels-answers.trec")


def export(ranking: Path, records: Path, positives: Path, out: Path, *, sets: Sequence[str]) -> dict[Path, int]:
    """Write FILES to the folder `out` and return how many lines each has; ids are single words, as TREC files need.

    The run has lines `question Q0 passage rank score tag`, its tag the name of the ranking's folder. The first
    judgements have `question 0 passage grade` of the passages that the report's metrics by id count, the second
    `question 0 passage 1` of the hits in top-k and MRR, and `question 0 - 0` for a question without a hit, which counts
    as wrong. They are of the ranked questions, or with `sets` of theirs; the unranked count as wrong, as in the report.
    """
    ranked = set(tables.read(ranking, Ranked, ["question_id"])["question_id"].to_pylist())
    selected_ids = set(read_question_ids(records / "question_sets.parquet", sets)) if sets else ranked
    if sets and ranked.isdisjoint(selected_ids):
        raise ValueError(f"{ranking} ranks no question of {', '.join(sets)}; give the ranking of these questions")
    questions = list(read_questions(records / "questions.parquet", ranked | selected_ids))
    judge = load_judge(records, positives, questions)
    tag = "_".join(ranking.absolute().parent.name.split())
    run, by_id, by_answer = lines = [], [], []
    for question, rows in zip(questions, read_rankings(ranking, judge.relevant), strict=True):
        if question.id in selected_ids:
            ids = [row.passage_id for row in rows]
            run += [f"{question.id} Q0 {row.passage_id} {row.rank} {score!s} {tag}" for row, score in fall(rows)]
            by_id += [f"{question.id} 0 {i} {grade:g}" for i, grade in judge.relevant[question.id].items()]
            hits = [i for i, hit in zip(ids, judge(question, ids), strict=True) if hit]
            by_answer += [f"{question.id} 0 {i} 1" for i in hits] or [f"{question.id} 0 - 0"]
    with ExitStack() as stack:  # all files or none
        for name, of_file in zip(FILES, lines, strict=True):
            temporary = stack.enter_context(files.replacing(out / name))
            temporary.write_text("".join(f"{line}\n" for line in of_file), encoding="utf-8")
    return {out / name: len(of_file) for name, of_file in zip(FILES, lines, strict=True)}


def fall(rows: Iterable[Ranked]) -> Iterator[tuple[Ranked, np.float32]]:
    """Yield rows with their scores, each below the previous one: TREC tools order by score and ignore the rank."""
    previous = np.float32(np.inf)
    for row in rows:
        previous = min(np.float32(row.score), np.nextafter(previous, np.float32(-np.inf)))
        yield row, previous
