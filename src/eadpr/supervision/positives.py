"""The positive passages of every question, and what each question is used for.

A positive is what the source gave or, where it gave none, the best BM25 passage that holds an answer (Karpukhin et al.,
2020, section 4.1). Questions are parted into train and validation, and into halves, by whole titles.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from eadpr import files, tables
from eadpr.config import Section, Sets
from eadpr.passages import PassageStore
from eadpr.questions import select, selected
from eadpr.records import Context, Fold, Positive, Question, Ranked, Span
from eadpr.text import AnswerMatcher


class Positives(Section):
    validation: float = Field(ge=0, lt=1)
    seed: int = Field(ge=0)


def find_positives(records: Path, ranking: Path, out: Path, *, positives: Positives, sets: Sets) -> int:
    """Write positives.parquet, folds.parquet and report.json to the folder `out`; returns the number of positives.

    `ranking` is a folder with train.parquet and evaluate.parquet; a question that is in neither has given positives
    only. Raises ValueError where no training question has a positive.
    """
    chosen = {name: select(records / "question_sets.parquet", getattr(sets, name)) for name in Sets.model_fields}
    _check_apart(chosen, sets)
    wanted = frozenset().union(*chosen.values())
    questions = {q.id: q for q in selected(records / "questions.parquet", wanted)}
    store = PassageStore(records / "passages.parquet")
    matcher = AnswerMatcher()

    found = given_positives(records / "contexts.parquet", wanted)
    without_answer = {i for i in found if _lacks_answer(questions[i], found[i], store, matcher)}
    answerable = {i: q for i, q in questions.items() if i not in found and q.sought}
    for name in ("train", "evaluate"):
        found |= ranked_positives(ranking / f"{name}.parquet", answerable, store, matcher)
    if chosen["train"] and not any(i in found for i in chosen["train"]):
        raise ValueError(
            f"none of the {len(chosen['train']):,} training questions ({', '.join(sets.train)}) has a positive passage:"
            " none was given, and no passage ranked by BM25 holds an answer; check the answers or give positives"
        )

    learners = {*chosen["train"], *chosen["annotator"]} & found.keys()
    learning = [i for i in questions if i in learners]
    titles = dict(zip(learning, _titles([found[i][0].passage_id for i in learning], store), strict=True))
    trained = frozenset(chosen["train"])
    of_training = carve({i: title for i, title in titles.items() if i in trained}, positives=positives)
    roles = {fold.question_id: fold.role for fold in of_training}
    folds = [f._replace(role=roles.get(f.question_id, "annotator")) for f in carve(titles, positives=positives)]
    with files.new_folder(out) as temporary:
        rows = (positive for i in questions for positive in found.get(i, ()))
        count = tables.write(temporary / "positives.parquet", Positive, rows)
        tables.write(temporary / "folds.parquet", Fold, folds)
        files.write_json(temporary / "report.json", _report(chosen, found, without_answer, folds))
    return count


def _check_apart(chosen: dict[str, list[str]], sets: Sets) -> None:
    """No question that is evaluated on may be learnt from, by arms or by the annotator."""
    evaluated = frozenset(chosen["evaluate"])
    for name in ("train", "annotator"):
        both = [i for i in chosen[name] if i in evaluated]
        if both:
            raise ValueError(
                f"question {both[0]!r} and {len(both) - 1:,} more are in sets.{name} ({', '.join(getattr(sets, name))})"
                f" and in sets.evaluate ({', '.join(sets.evaluate)}); evaluate on other questions"
            )


def given_positives(contexts: Path, wanted: Collection[str]) -> dict[str, list[Positive]]:
    """The positives that the source gave, by question, in the source's order, each passage once."""
    wanted_ids = pa.array(sorted(wanted), pa.string())
    rows: dict[str, list[tuple[int, str, list[Span] | None]]] = {}
    for batch in tables.batches(contexts, Context, columns=["question_id", "passage_id", "role", "order", "gold"]):
        is_positive = pc.equal(batch.column("role"), "positive")
        batch = batch.filter(pc.and_(is_positive, pc.is_in(batch.column("question_id"), value_set=wanted_ids)))
        for row in batch.to_pylist():
            gold = None if row["gold"] is None else [Span(**span) for span in row["gold"]]
            rows.setdefault(row["question_id"], []).append((row["order"], row["passage_id"], gold))
    positives = {}
    for question_id, given in rows.items():
        first = {}
        for _, passage_id, gold in sorted(given, key=lambda row: row[0]):
            first.setdefault(passage_id, Positive(question_id, passage_id, "given", gold))
        positives[question_id] = list(first.values())
    return positives


def ranked_positives(
    ranking: Path, questions: dict[str, Question], store: PassageStore, matcher: AnswerMatcher
) -> dict[str, list[Positive]]:
    """For each of `questions` in the ranking its best passage whose text holds an answer, if any does."""
    found = {}
    for question_id, rows in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        if question_id not in questions:
            continue
        ids = [row.passage_id for row in rows]
        held = _holding(questions[question_id], ids, store, matcher)
        if any(held):
            found[question_id] = [Positive(question_id, ids[held.index(True)], "bm25", None)]
    return found


def _holding(question: Question, passage_ids: list[str], store: PassageStore, matcher: AnswerMatcher) -> list[bool]:
    texts = store.texts(store.rows(passage_ids))
    return matcher.matches(question.answers, texts, question.answer_kind).tolist()


def _lacks_answer(question: Question, given: list[Positive], store: PassageStore, matcher: AnswerMatcher) -> bool:
    """Whether the question has answers to seek and not one of its given positives holds any."""
    return question.sought and not any(_holding(question, [p.passage_id for p in given], store, matcher))


def _titles(passage_ids: list[str], store: PassageStore) -> list[str]:
    """Titles of passages; a passage without one stands for itself."""
    titles = store.titles(store.rows(passage_ids))
    return [f"title {title}" if title else f"id {i}" for i, title in zip(passage_ids, titles, strict=True)]


def carve(titles: dict[str, str], *, positives: Positives) -> list[Fold]:
    """Folds of questions, in their order; `titles` maps a question to the title that decides.

    Titles are taken in an order that a seeded hash gives. Validation gets those that still fit into its share of the
    questions (rounded up, but not all), or the smallest title where none fits and there is another. Then each title of
    either role goes to the half with fewer questions.
    """
    sizes = Counter(titles.values())
    order = sorted(sizes, key=lambda title: hashlib.sha256(f"{positives.seed}\0{title}".encode()).digest())
    room = target = min(math.ceil(positives.validation * len(titles)), len(titles) - 1)
    validation = set()
    for title in order:
        if sizes[title] <= room:
            validation.add(title)
            room -= sizes[title]
    if target > 0 and not validation and len(order) > 1:
        validation.add(min(order, key=sizes.__getitem__))
    halves = {}
    for role in (False, True):
        filled = [0, 0]
        for title in order:
            if (title in validation) == role:
                halves[title] = half = int(filled[1] < filled[0])
                filled[half] += sizes[title]
    return [
        Fold(question_id, "validation" if title in validation else "train", halves[title])
        for question_id, title in titles.items()
    ]


def _report(
    chosen: dict[str, list[str]], found: dict[str, list[Positive]], without_answer: set[str], folds: list[Fold]
) -> dict[str, object]:
    roles = Counter(fold.role for fold in folds)
    report: dict[str, object] = {"folds": {role: roles[role] for role in ("train", "validation", "annotator")}}
    for name, ids in chosen.items():
        sources = Counter(found[i][0].source if i in found else "none" for i in ids)
        report[name] = {
            "questions": len(ids),
            "with_given_positives": sources["given"],
            "with_bm25_positive": sources["bm25"],
            "without_positive": sources["none"],
            "given_positives_hold_no_answer": sum(i in without_answer for i in ids),
            "positives": sum(len(found.get(i, ())) for i in ids),
        }
    return report
