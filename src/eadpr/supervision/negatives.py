"""Hard negatives of an arm: passages that a retriever ranks high, or any at random, that hold no answer.

A passage that is a positive of a question, or has the text of one, is never its negative. The setting `exclude` keeps
away those whose text holds an answer (no passage holds a yes or no), those that have the title of a positive, or both.
"""

from __future__ import annotations

import hashlib
import math
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from eadpr import files, tables
from eadpr.config import Section
from eadpr.passages import PassageStore
from eadpr.progress import progress
from eadpr.questions import selected
from eadpr.records import Fold, Negative, Positive, Question, Ranked
from eadpr.supervision.denoise import PROMOTED, promoted
from eadpr.text import AnswerMatcher

BLOCK = 512  # questions whose passages are held at once: about 50 MiB at depth 100


REASONS = ("is_positive", "text_of_positive", "title_of_positive", "holds_answer", "within_margin")


class Negatives(Section):
    kind: Literal["ranked", "random", "none"]
    depth: int = Field(ge=1)
    skip: int = Field(ge=0)
    keep: int = Field(ge=1)
    exclude: list[Literal["answer", "title"]]
    margin: float | None = Field(ge=0)
    seed: int = Field(ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Negatives:
        if self.skip >= self.depth:
            raise ValueError(f"skip ({self.skip}) leaves nothing of depth ({self.depth})")
        if self.margin is not None and self.kind != "ranked":
            raise ValueError(f"margin needs the scores of a ranking, which kind {self.kind!r} has not; set it to null")
        return self


class Candidate(NamedTuple):
    passage_id: str
    rank: int
    score: float


class Pool(NamedTuple):
    """Candidates of one question, best first, and the score above which they are too near to the positive."""

    question_id: str
    candidates: list[Candidate]
    ceiling: float


def mine(records: Path, positives: Path, ranking: Path, out: Path, *, negatives: Negatives) -> int:
    """Write negatives.parquet and report.json to the folder `out`; returns the number of negatives.

    Questions are those of the folds train and validation. `ranking` is the folder of BM25's or an arm's ranking: where
    `kind` is `ranked`, its train.parquet is read and its name is the negatives' `source`; positives that it brings
    (stage `denoise`) are handed on. The report counts questions, negatives and, by reason, refused candidates.
    """
    given: dict[str, list[str]] = {}
    for positive in tables.rows(positives / "positives.parquet", Positive):
        given.setdefault(positive.question_id, []).append(positive.passage_id)
    new = promoted(ranking) if negatives.kind == "ranked" else {}
    for question_id, ids in new.items():
        given.setdefault(question_id, []).extend(ids)
    mined = [fold.question_id for fold in tables.rows(positives / "folds.parquet", Fold) if fold.role != "annotator"]
    questions = {question.id: question for question in selected(records / "questions.parquet", mined)}
    store, matcher = PassageStore(records / "passages.parquet"), AnswerMatcher()
    source = ranking.name if negatives.kind == "ranked" else negatives.kind
    pools = {
        "ranked": lambda: ranked_pools(ranking / "train.parquet", questions, given, negatives),
        "random": lambda: random_pools(questions, store, negatives),
        "none": lambda: iter(()),
    }[negatives.kind]()

    seen = supplied = 0
    counts: Counter[str] = Counter()
    with files.new_folder(out) as temporary:
        with (
            tables.writing(temporary / "negatives.parquet", Negative) as append,
            progress(f"negatives from {source}", len(questions), "questions") as advance,
        ):
            while block := list(islice(pools, BLOCK)):
                kept, refused = filter_pools(block, questions, given, store, matcher, negatives)
                append(tables.as_table(Negative, (Negative(i, c.passage_id, source, c.rank) for i, c in kept)))
                seen += len(block)
                supplied += len({question_id for question_id, _ in kept})
                counts += refused + Counter(negatives=len(kept))
                advance(len(block))
        if negatives.kind == "ranked" and questions and not seen:
            raise ValueError(
                f"{ranking / 'train.parquet'} ranks passages for none of the {len(questions):,} training questions, so"
                f" nothing can be mined from {ranking.name!r}; rebuild it with `dvc repro`, or name another source in"
                " `active`"
            )
        if new:
            shutil.copyfile(ranking / PROMOTED, temporary / PROMOTED)
        files.write_json(
            temporary / "report.json",
            {
                "source": source,
                "questions": len(questions),
                "without_candidates": len(questions) - seen,
                "without_negatives": len(questions) - supplied,
                "negatives": counts["negatives"],
                "refused": {reason: counts[reason] for reason in REASONS},
            },
        )
    return counts["negatives"]


def ranked_pools(
    ranking: Path, questions: Collection[str], positives: Mapping[str, list[str]], negatives: Negatives
) -> Iterator[Pool]:
    """Ranks above `skip` up to `depth`, ordered by falling score, then id.

    With a margin the ceiling lies that far below the best positive's score; where no positive is ranked, every
    candidate outscores it, and none is taken.
    """
    for question_id, rows in groupby(tables.rows(ranking, Ranked), key=attrgetter("question_id")):
        if question_id not in questions:
            continue
        ranked = [Candidate(row.passage_id, row.rank, row.score) for row in rows]
        ceiling = math.inf
        if negatives.margin is not None:
            own = [c.score for c in ranked if c.passage_id in positives[question_id]]
            ceiling = max(own, default=-math.inf) - negatives.margin
        inside = (c for c in ranked if negatives.skip < c.rank <= negatives.depth)
        yield Pool(question_id, sorted(inside, key=lambda c: (-c.score, c.passage_id)), ceiling)


def random_pools(questions: Iterable[str], store: PassageStore, negatives: Negatives) -> Iterator[Pool]:
    """`depth` passages of the whole corpus, drawn without repeats by a generator that seed and question id decide."""
    size = min(negatives.depth, len(store))
    for question_id in questions:
        digest = hashlib.sha256(f"{negatives.seed}\0{question_id}".encode()).digest()
        drawn = np.random.default_rng(int.from_bytes(digest)).choice(len(store), size, replace=False)
        candidates = [Candidate(passage_id, rank, 0.0) for rank, passage_id in enumerate(store.ids(drawn), start=1)]
        yield Pool(question_id, candidates, math.inf)


def filter_pools(
    pools: list[Pool],
    questions: Mapping[str, Question],
    positives: Mapping[str, list[str]],
    store: PassageStore,
    matcher: AnswerMatcher,
    negatives: Negatives,
) -> tuple[list[tuple[str, Candidate]], Counter[str]]:
    """The first `keep` candidates of each pool that may be negatives, and how many of all were refused by reason."""
    candidate_ids = {c.passage_id for pool in pools for c in pool.candidates}
    ids = sorted(candidate_ids.union(*(positives[pool.question_id] for pool in pools)))
    rows = store.rows(ids)
    texts = dict(zip(ids, store.texts(rows), strict=True))
    titles = dict(zip(ids, store.titles(rows), strict=True)) if "title" in negatives.exclude else {}
    kept: list[tuple[str, Candidate]] = []
    refused: Counter[str] = Counter()
    for pool in pools:
        question, own = questions[pool.question_id], positives[pool.question_id]
        own_texts = {texts[i] for i in own}
        own_titles = {titles[i] for i in own if titles.get(i)}
        candidate_texts = [texts[c.passage_id] for c in pool.candidates]
        sought = question.answers if "answer" in negatives.exclude else []
        holds = matcher.matches(sought, candidate_texts, question.answer_kind)
        room = negatives.keep
        for candidate, text, held in zip(pool.candidates, candidate_texts, holds, strict=True):
            if candidate.passage_id in own:
                refused["is_positive"] += 1
            elif text in own_texts:
                refused["text_of_positive"] += 1
            elif titles.get(candidate.passage_id) in own_titles:
                refused["title_of_positive"] += 1
            elif held:
                refused["holds_answer"] += 1
            elif candidate.score >= pool.ceiling:
                refused["within_margin"] += 1
            elif room:
                kept.append((pool.question_id, candidate))
                room -= 1
    return kept, refused
