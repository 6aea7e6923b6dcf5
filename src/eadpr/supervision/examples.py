"""An arm's training examples: a question with one positive, its negatives and whether it has a distractor.

Questions, their order and their positives depend on nothing but `positives` and the settings `positive` and `seed`, so
that arms which differ in negatives or strategy still see the same questions in the same order. Positives that a reader
added to an arm's negatives (stage `denoise`) come after those in training, and have no distractors; validation asks
every arm for the same passages.

The form of a question's distractors is drawn. Where a pair has none of this form it gets the next of those with a share
that it has, by name and round (a file of settings is sorted), and `cut` at the last.
"""

import hashlib
import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field, field_validator

from eadpr.runtime import files
from eadpr.runtime.section import Section
from eadpr.storage import engine, tables
from eadpr.storage.rankings import PROMOTED
from eadpr.storage.records import Distractor, Example, Fold, Negative, Positive
from eadpr.supervision.config import Form, Placebo, Strategy

ROLES = ("train", "validation")
QUESTIONS = 2**17  # whose examples are sorted at a time; decides nothing


class Examples(Section):
    """`forms`: the share of the questions whose distractors are to have each form."""

    strategy: Strategy | Placebo | Literal["none"]
    forms: dict[Form, Annotated[float, Field(ge=0)]]
    positive: Literal["first", "random", "each"]
    questions: int | None = Field(ge=1)
    seed: int = Field(ge=0)

    @field_validator("forms")
    @classmethod
    def _whole(cls, forms: dict[Form, float]) -> dict[Form, float]:
        if not math.isclose(sum(forms.values()), 1, rel_tol=0, abs_tol=1e-9):
            raise ValueError(f"shares must add up to 1, but add up to {sum(forms.values()):.6g}")
        return forms

    @property
    def shares(self) -> dict[Form, float]:
        """Of the forms that any question is to have."""
        return {form: share for form, share in self.forms.items() if share}


class ArmExamples(Examples):
    """`placebos`: the strategy of those that the arm's loss compares with, of which the stage `configs` knows."""

    placebos: Placebo | None


def make_examples(positives: Path, negatives: Path, distractors: Path, out: Path, *, examples: ArmExamples) -> int:
    """Write examples.parquet, distractors.parquet (those the examples use) and report.json to `out`; returns the number
    of training examples.

    With `placebos` there is placebos.parquet too, filled ones where the pair's distractor is, else cut. With strategy
    `none` and no placebos the distractors are not read, so that they decide none of the bytes. Raises ValueError where
    no training question has a positive.
    """
    with engine.connect() as connection:
        engine.view(connection, "folds", positives / "folds.parquet", Fold)
        engine.view(connection, "positives", positives / "positives.parquet", Positive)
        engine.view(connection, "negatives", negatives / "negatives.parquet", Negative)
        added = negatives / PROMOTED
        engine.view(connection, "added", added if added.exists() else positives / "positives.parquet", Positive)
        _choose(connection, examples, added=added.exists())
        if not engine.value(connection, "SELECT count(*) FROM chosen WHERE role = 'train'"):
            without = engine.value(connection, "SELECT count(*) FROM asked WHERE role = 'train'")
            raise ValueError(
                f"{positives} gives no training question with a positive ({without} are without one); give positives,"
                " or answers that occur in passages, or lower positives.validation"
            )
        with files.new_folder(out) as folder:
            used = folder / "distractors.parquet"
            if examples.strategy == "none" and not examples.placebos:
                tables.write(used, Distractor, ())
            else:
                engine.view(connection, "distractors", distractors / "distractors.parquet", Distractor)
                _pick(connection, examples)
                engine.write(connection, _USED, used, Distractor, {"strategy": examples.strategy})
            if examples.placebos:
                placebos = folder / "placebos.parquet"
                engine.write(connection, _PLACEBOS, placebos, Distractor, {"strategy": examples.placebos})
                engine.view(connection, "placebos", placebos, Distractor)
            engine.view(connection, "used", used, Distractor)
            connection.execute(_MINED)
            rows = engine.group_rows(_rows(connection), ["place", "n"], ["negatives", "distractors", "others"])
            made = folder / "examples.parquet"
            with tables.writing(made, Example) as append:
                for table in rows:
                    append(table.select(Example._fields).cast(tables.schema(Example)))
            report = _report(connection, made, examples)
            files.write_json(folder / "report.json", report)
    return report["train"]["examples"]


def _rows(connection: engine.Connection) -> Iterator[pa.RecordBatch]:
    """What `_EXAMPLES` gives for all questions, for some after others, as sorting all at once takes more memory."""
    places = engine.value(connection, "SELECT coalesce(max(place) + 1, 0) FROM chosen")
    for first in range(0, places, QUESTIONS):
        yield from engine.batches(connection, _EXAMPLES, {"first": first, "end": first + QUESTIONS})


def _choose(connection: engine.Connection, examples: Examples, *, added: bool) -> None:
    """Make the tables `asked`, the questions, and `chosen`, which of their positives make examples: the first, one
    drawn by a hash of seed and question id, or each.

    Of the training questions that have a positive, all but the first `questions` in the order of a hash are left out,
    so that fewer are among more.
    """

    def drawn(ids: pa.Array, counts: pa.Array) -> pa.Array:
        """A number below each count."""
        digests = (hashlib.sha256(f"{examples.seed}\0{one}".encode()).digest() for one in ids.to_pylist())
        rows = zip(digests, counts.to_pylist(), strict=True)
        return pa.array([int.from_bytes(digest) % count for digest, count in rows], pa.int64())

    connection.create_function("drawn", drawn, ["VARCHAR", "BIGINT"], "BIGINT", type="arrow")
    connection.execute(_ASKED)
    connection.execute(_GIVEN.format(_FOUND + _ADDED * added))
    if examples.questions is not None:
        connection.execute(_LEFT_OUT, {"questions": examples.questions, "seed": examples.seed})
        connection.execute("DELETE FROM asked WHERE place IN (FROM left_out)")
    taken = {"first": "n = 1", "each": "true", "random": "n = one"}
    connection.execute(_CHOSEN.format(taken[examples.positive]))


def _pick(connection: engine.Connection, examples: ArmExamples) -> None:
    """Make the table `picked`: the form that is wanted of each chosen pair, and the one that it gets; null where it has
    no distractor of the strategy."""
    shares = examples.shares
    forms, ends = list(shares), list(accumulate(shares.values()))[:-1]

    def wanted(ids: pa.Array) -> pa.Array:
        digests = (hashlib.sha256(f"{examples.seed}\0{one}\0form".encode()).digest() for one in ids.to_pylist())
        return pa.array([forms[bisect_right(ends, int.from_bytes(one) / 2**256)] for one in digests], pa.string())

    connection.create_function("wanted", wanted, ["VARCHAR"], "VARCHAR", type="arrow")
    turns = {first: dict.fromkeys([*forms[i:], *forms[:i], "cut"]) for i, first in enumerate(forms)}
    rows = [(first, form, turn) for first, in_turn in turns.items() for turn, form in enumerate(in_turn)]
    connection.register("turns", pa.table(dict(zip(("wanted", "form", "turn"), zip(*rows, strict=True), strict=True))))
    given = {"strategy": examples.strategy, "placebos": examples.placebos}
    connection.execute(_PICKED, given)


_ASKED = f"""
CREATE TABLE asked AS SELECT {engine.POSITION} AS place, question_id, role FROM folds WHERE role IN {ROLES}
"""
_FOUND = f"""
SELECT place, passage_id, false AS late, p.{engine.POSITION} AS pos FROM asked JOIN positives p USING (question_id)
"""
_ADDED = f"""
UNION ALL SELECT place, passage_id, true, a.{engine.POSITION}
FROM asked JOIN added a USING (question_id) WHERE role = 'train' AND question_id IN (SELECT question_id FROM positives)
"""
_GIVEN = """
CREATE TABLE given AS
SELECT place, passage_id, row_number() OVER (PARTITION BY place ORDER BY late, pos) AS n FROM ({})
"""
_LEFT_OUT = """
CREATE TABLE left_out AS SELECT place FROM asked WHERE role = 'train' AND place IN (SELECT place FROM given)
ORDER BY sha256($seed || chr(0) || question_id || chr(0) || 'kept') OFFSET $questions
"""
_CHOSEN = """
CREATE TABLE chosen AS SELECT place, n, question_id, role, passage_id
FROM given JOIN (
    SELECT asked.*, 1 + drawn(question_id, total) AS one
    FROM asked JOIN (SELECT place, count(*) AS total FROM given GROUP BY place) USING (place)
) USING (place) WHERE {}
"""
_PICKED = """
CREATE TABLE picked AS
SELECT question_id, passage_id, wanted, arg_min(form, turn) FILTER (strategy = $strategy) AS form
FROM (SELECT question_id, passage_id, wanted(question_id) AS wanted FROM chosen)
JOIN distractors USING (question_id, passage_id) JOIN turns USING (wanted, form)
WHERE strategy IN ($strategy, $placebos) GROUP BY ALL
"""
_USED = f"""
SELECT d.* FROM distractors d JOIN picked p USING (question_id, passage_id)
WHERE strategy = $strategy AND d.form = p.form ORDER BY {engine.POSITION}
"""
_PLACEBOS = f"""
SELECT d.* FROM distractors d JOIN picked p USING (question_id, passage_id)
WHERE strategy = $strategy AND d.form = if(p.form = 'filled', 'filled', 'cut') ORDER BY {engine.POSITION}
"""
# Each negative once, but no chosen positive.
_MINED = f"""
CREATE TABLE mined AS
SELECT place, g.passage_id, min(g.{engine.POSITION}) AS pos FROM negatives g JOIN asked USING (question_id)
ANTI JOIN chosen c ON c.place = asked.place AND c.passage_id = g.passage_id GROUP BY ALL ORDER BY place
"""
# A row for each example, each of its negatives, in the order of their table, its distractor and other positives.
_EXAMPLES = """
WITH c AS (SELECT * FROM chosen WHERE place >= $first AND place < $end)
SELECT place, n, question_id, role, passage_id AS positive, NULL::VARCHAR AS negatives, NULL::INT AS distractors,
    NULL::VARCHAR AS others, -1 AS pos FROM c
UNION ALL SELECT place, n, NULL, NULL, NULL, m.passage_id, NULL, NULL, pos FROM c JOIN mined m USING (place)
    WHERE m.place >= $first AND m.place < $end
UNION ALL SELECT place, n, NULL, NULL, NULL, NULL, level, NULL, level FROM c JOIN used USING (question_id, passage_id)
UNION ALL SELECT place, c.n, NULL, NULL, NULL, NULL, NULL, g.passage_id, g.n FROM c JOIN given g USING (place)
    WHERE g.place >= $first AND g.place < $end AND g.passage_id <> c.passage_id
ORDER BY place, n, pos
"""


def _report(connection: engine.Connection, made: Path, examples: ArmExamples) -> dict[str, dict[str, Any]]:
    engine.view(connection, "made", made, Example)
    report = {}
    for role in ROLES:
        report[role] = engine.first(connection, _COUNTS, {"role": role})
        if examples.strategy == "none":
            del report[role]["without_distractor"]
        elif list(examples.shares) != ["cut"]:
            report[role] |= {
                name: dict(connection.execute(query, {"role": role}).fetchall()) for name, query in _OF_FORMS.items()
            }
        if examples.placebos:
            report[role]["without_placebo"] = engine.value(connection, _WITHOUT_PLACEBO, {"role": role})
    if examples.questions is not None:
        report["train"]["left_out"] = engine.value(connection, "SELECT count(*) FROM left_out")
    return report


_COUNTS = """
SELECT count(*) AS examples, count(*) FILTER (len(negatives) = 0) AS without_negatives,
    count(*) FILTER (len(distractors) = 0) AS without_distractor,
    (SELECT count(*) FROM asked ANTI JOIN chosen USING (place) WHERE role = $role) AS without_positive
FROM made WHERE role = $role
"""
_FORMS = """
SELECT {0}, count(*) FROM chosen JOIN picked USING (question_id, passage_id)
WHERE role = $role AND {1} GROUP BY ALL ORDER BY ALL
"""
_OF_FORMS = {
    "forms": _FORMS.format("form", "form IS NOT NULL"),
    "fallbacks": _FORMS.format("wanted || ' to ' || form", "form <> wanted"),
}
_WITHOUT_PLACEBO = """
SELECT count(*) FROM chosen ANTI JOIN placebos USING (question_id, passage_id) WHERE role = $role
"""
