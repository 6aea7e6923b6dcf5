"""An arm's training examples: a question with one positive, its negatives and its distractor, if it has one.

Questions, their order and their positives depend on `positives` and the setting `positive` only, so that arms that
differ in negatives or strategy see the same questions in the same order. A pair that has no distractor of the setting
`form` gets the one that was cut.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from eadpr.runtime import files
from eadpr.runtime.section import Section
from eadpr.storage import engine, tables
from eadpr.storage.records import Distractor, Example, Fold, Negative, Positive
from eadpr.supervision.config import Form, Placebo, Strategy

ROLES = ("train", "validation")
BLOCK = 2**20  # negatives of examples sorted at a time, since all at once take more memory; decides no bytes


class Examples(Section):
    strategy: Strategy | Placebo | Literal["none"]
    form: Form
    positive: Literal["first", "each"]
    questions: int | None = Field(ge=1)
    seed: int = Field(ge=0)


class ArmExamples(Examples):
    """Examples with the kind of placebos that the arm's loss needs; the stage `configs` sets it."""

    placebos: Placebo | None


def make_examples(positives: Path, negatives: Path, distractors: Path, out: Path, *, examples: ArmExamples) -> int:
    """Write examples.parquet, the distractors.parquet they use and report.json to `out`; count the training examples.

    With `placebos` there is also placebos.parquet: filled placebos for filled distractors, else cut ones. With strategy
    `none` and no placebos the distractors are not read, so that they decide no bytes.
    """
    with engine.connect() as connection:
        engine.view(connection, "folds", positives / "folds.parquet", Fold)
        engine.view(connection, "positives", positives / "positives.parquet", Positive)
        engine.view(connection, "negatives", negatives / "negatives.parquet", Negative)
        _choose_positives(connection, examples)
        with files.new_folder(out) as folder:
            used = folder / "distractors.parquet"
            if examples.strategy == "none" and not examples.placebos:
                tables.write(used, Distractor, ())
            else:
                engine.view(connection, "distractors", distractors / "distractors.parquet", Distractor)
                connection.execute(_PICKED, examples.model_dump(include={"strategy", "placebos", "form"}))
                engine.write(connection, _USED, used, Distractor, {"strategy": examples.strategy})
            if examples.placebos:
                placebos = folder / "placebos.parquet"
                engine.write(connection, _PLACEBOS, placebos, Distractor, {"strategy": examples.placebos})
                engine.view(connection, "placebos", placebos, Distractor)
            engine.view(connection, "used", used, Distractor)
            connection.execute(_MINED)
            places = engine.value(connection, "SELECT coalesce(max(place) + 1, 0) FROM chosen")
            step = max(1, BLOCK * places // max(1, engine.value(connection, "SELECT count(*) FROM mined")))
            blocks = [{"first": first, "end": first + step} for first in range(0, places, step)]
            engine.write(connection, _EXAMPLES, folder / "examples.parquet", Example, *blocks)
            engine.view(connection, "examples", folder / "examples.parquet", Example)
            report = _report(connection, examples)
            files.write_json(folder / "report.json", report)
    return report["train"]["examples"]


def _choose_positives(connection: engine.Connection, examples: Examples) -> None:
    """Make the tables `asked`, the questions, and `chosen`, their positives that make examples: the first or each.

    With `questions` only so many training questions with a positive stay, the first by a hash: fewer are among more.
    """
    connection.execute(_ASKED)
    connection.execute(_ALL_POSITIVES)
    if examples.questions is not None:
        connection.execute(_LEFT_OUT, {"questions": examples.questions, "seed": examples.seed})
        connection.execute("DELETE FROM asked WHERE place IN (FROM left_out)")
    connection.execute(f"{_CHOSEN} WHERE n = 1" if examples.positive == "first" else _CHOSEN)


_ASKED = f"""
CREATE TABLE asked AS SELECT {engine.POSITION} AS place, question_id, role FROM folds WHERE role IN {ROLES}
"""
_ALL_POSITIVES = f"""
CREATE TABLE all_positives AS
SELECT place, passage_id, row_number() OVER (PARTITION BY place ORDER BY p.{engine.POSITION}) AS n
FROM asked JOIN positives p USING (question_id)
"""
_LEFT_OUT = """
CREATE TABLE left_out AS SELECT place FROM asked WHERE role = 'train' AND place IN (SELECT place FROM all_positives)
ORDER BY sha256($seed || chr(0) || question_id || chr(0) || 'kept') OFFSET $questions
"""
_CHOSEN = """
CREATE TABLE chosen AS
SELECT place, n, question_id, role, passage_id FROM all_positives JOIN asked USING (place)
"""
# The form of each pair's distractor, null if it has none of the strategy.
_PICKED = """
CREATE TABLE picked AS
SELECT question_id, passage_id, arg_min(form, form <> $form) FILTER (strategy = $strategy) AS form
FROM chosen JOIN distractors USING (question_id, passage_id)
WHERE strategy IN ($strategy, $placebos) AND form IN ($form, 'cut') GROUP BY ALL
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
# Lists are sorted afterwards: each group of list(... ORDER BY ...) takes DuckDB 40 KiB.
_EXAMPLES = """
WITH c AS (FROM chosen WHERE place >= $first AND place < $end),
of_question AS (
    SELECT place, list_transform(list_sort(list({n: pos, id: passage_id})), lambda g: g.id) AS negatives
    FROM mined WHERE place >= $first AND place < $end GROUP BY 1
),
of_pair AS (
    SELECT place, n, list_sort(list(level)) AS levels FROM c JOIN used USING (question_id, passage_id) GROUP BY 1, 2
),
of_example AS (
    SELECT place, c.n, list_transform(list_sort(list({n: o.n, id: o.passage_id})), lambda p: p.id) AS others
    FROM c JOIN all_positives o USING (place) WHERE o.passage_id <> c.passage_id GROUP BY 1, 2
)
SELECT question_id, role, passage_id AS positive, coalesce(negatives, []) AS negatives,
    coalesce(levels, []) AS distractors, coalesce(others, []) AS others
FROM c LEFT JOIN of_question USING (place) LEFT JOIN of_pair USING (place, n) LEFT JOIN of_example USING (place, n)
ORDER BY place, n
"""


def _report(connection: engine.Connection, examples: ArmExamples) -> dict[str, dict[str, Any]]:
    report = {}
    for role in ROLES:
        report[role] = engine.first(connection, _COUNTS, {"role": role})
        if examples.strategy == "none":
            del report[role]["without_distractor"]
        elif examples.form != "cut":
            report[role]["forms"] = dict(connection.execute(_FORMS, {"role": role}).fetchall())
        if examples.placebos:
            report[role]["without_placebo"] = engine.value(connection, _WITHOUT_PLACEBO, {"role": role})
    if examples.questions is not None:
        report["train"]["left_out"] = engine.value(connection, "SELECT count(*) FROM left_out")
    return report


_COUNTS = """
SELECT count(*) AS examples, count(*) FILTER (len(negatives) = 0) AS without_negatives,
    count(*) FILTER (len(distractors) = 0) AS without_distractor,
    (SELECT count(*) FROM asked ANTI JOIN chosen USING (place) WHERE role = $role) AS without_positive
FROM examples WHERE role = $role
"""
_FORMS = """
SELECT form, count(*) FROM chosen JOIN picked USING (question_id, passage_id)
WHERE role = $role AND form IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
_WITHOUT_PLACEBO = """
SELECT count(*) FROM chosen ANTI JOIN placebos USING (question_id, passage_id) WHERE role = $role
"""
