"""An arm's training examples: a question with one positive, its negatives and the levels of its distractors.

Questions, their order and their positives depend on nothing but `positives` and the settings `positive` and `seed`, so
that arms which differ in negatives or strategy still see the same questions in the same order. Positives that a reader
added to an arm's negatives (stage `denoise`) come after those in training, and have no distractors; validation asks
every arm for the same passages.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from eadpr import files, tables
from eadpr.config import Section
from eadpr.records import Distractor, Example, Fold, Negative, Positive
from eadpr.supervision.config import Strategy
from eadpr.supervision.denoise import promoted

ROLES = ("train", "validation")


class Examples(Section):
    strategy: Strategy | Literal["pivots", "none"]
    positive: Literal["first", "random", "each"]
    questions: int | None = Field(ge=1)
    seed: int = Field(ge=0)


def make_examples(positives: Path, negatives: Path, distractors: Path, out: Path, *, examples: Examples) -> int:
    """Write examples.parquet, distractors.parquet (those the examples use) and report.json to `out`; returns the number
    of training examples.

    With strategy `none` the distractors are not read, so that they decide none of the bytes. Raises ValueError where no
    training question has a positive.
    """
    folds = tables.rows(positives / "folds.parquet", Fold)
    roles = {fold.question_id: fold.role for fold in folds if fold.role in ROLES}
    chosen = choose_positives(positives / "positives.parquet", roles, examples, added=promoted(negatives))
    left_out = _beyond([i for i in chosen if roles[i] == "train"], examples)
    roles = {i: role for i, role in roles.items() if i not in left_out}
    chosen = {i: positive for i, positive in chosen.items() if i not in left_out}
    mined = _negatives_of(negatives / "negatives.parquet", chosen)
    with files.new_folder(out) as folder:
        used = _distractors_of(distractors / "distractors.parquet", chosen, examples.strategy)
        tables.write(folder / "distractors.parquet", Distractor, used)
        levels: dict[tuple[str, str], list[int]] = {}
        columns = ["question_id", "passage_id", "level"]
        for row in tables.batches(folder / "distractors.parquet", Distractor, columns=columns):
            for *pair, level in zip(*(row.column(name).to_pylist() for name in columns), strict=True):
                levels.setdefault(tuple(pair), []).append(level)
        rows = [
            Example(i, role, positive, mined.get(i, []), sorted(levels.get((i, positive), [])))
            for i, role in roles.items()
            for positive in chosen.get(i, [])
        ]
        report = _report(roles, rows, examples)
        if examples.questions is not None:
            report["train"]["left_out"] = len(left_out)
        if not report["train"]["examples"]:
            raise ValueError(
                f"{positives} gives no training question with a positive"
                f" ({report['train']['without_positive']} are without one); give positives, or answers that occur in"
                " passages, or lower positives.validation"
            )
        tables.write(folder / "examples.parquet", Example, rows)
        files.write_json(folder / "report.json", report)
    return report["train"]["examples"]


def choose_positives(
    path: Path, questions: dict[str, str], examples: Examples, *, added: Mapping[str, list[str]] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Positives per question: the first, one drawn by a hash of seed and question id, or each; `added` come last, and
    only in training. `questions` maps ids to roles."""
    found: dict[str, list[str]] = {}
    for batch in tables.batches(path, Positive, columns=["question_id", "passage_id"]):
        for question_id, passage_id in zip(*(batch.column(i).to_pylist() for i in range(2)), strict=True):
            if question_id in questions:
                found.setdefault(question_id, []).append(passage_id)
    for question_id, ids in found.items():
        if questions[question_id] == "train":
            ids.extend(added.get(question_id, ()))
    if examples.positive == "first":
        return {question_id: ids[:1] for question_id, ids in found.items()}
    if examples.positive == "each":
        return found
    return {question_id: [ids[_drawn(examples.seed, question_id, len(ids))]] for question_id, ids in found.items()}


def _beyond(training: list[str], examples: Examples) -> frozenset[str]:
    """Training questions left out: all but the first `questions` in the order of a hash, so that sets are nested."""
    if examples.questions is None:
        return frozenset()
    order = sorted(training, key=lambda question_id: _hash(examples.seed, f"{question_id}\0kept"))
    return frozenset(order[examples.questions :])


def _drawn(seed: int, question_id: str, count: int) -> int:
    return _hash(seed, question_id) % count


def _hash(seed: int, text: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{text}".encode()).digest())


def _negatives_of(path: Path, chosen: dict[str, list[str]]) -> dict[str, list[str]]:
    """Negatives by question in the table's order; never a chosen positive, each once."""
    found: dict[str, dict[str, None]] = {}
    for batch in tables.batches(path, Negative, columns=["question_id", "passage_id"]):
        for question_id, passage_id in zip(*(batch.column(i).to_pylist() for i in range(2)), strict=True):
            if passage_id not in chosen.get(question_id, [passage_id]):
                found.setdefault(question_id, {})[passage_id] = None
    return {question_id: list(ids) for question_id, ids in found.items()}


def _distractors_of(path: Path, chosen: dict[str, list[str]], strategy: str) -> Iterator[Distractor]:
    """Distractors of the chosen positives by one strategy, in the table's order."""
    if strategy == "none":
        return
    wanted = pa.array(sorted(chosen), pa.string())
    for batch in tables.batches(path, Distractor):
        here = pc.and_(
            pc.equal(batch.column("strategy"), strategy), pc.is_in(batch.column("question_id"), value_set=wanted)
        )
        for distractor in tables.records(batch.filter(here), Distractor):
            if distractor.passage_id in chosen[distractor.question_id]:
                yield distractor


def _report(roles: dict[str, str], rows: list[Example], examples: Examples) -> dict[str, dict[str, int]]:
    asked = Counter(roles.values())
    report = {}
    for role in ROLES:
        own = [row for row in rows if row.role == role]
        report[role] = {
            "examples": len(own),
            "without_positive": asked[role] - len({row.question_id for row in own}),
            "without_negatives": sum(not row.negatives for row in own),
        }
        if examples.strategy != "none":
            report[role]["without_distractor"] = sum(not row.distractors for row in own)
    return report
