"""The positive passages of every question, and the split of the questions into train and validation.

Positives are the source's or else the best BM25 passage with an answer (Karpukhin et al., 2020, 4.1). Questions are
split into train and validation, and into halves, by whole titles; sets.validation, if any, validates, and others train.
"""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import Field

from eadpr.runtime import files
from eadpr.runtime.section import Section, Sets
from eadpr.storage import engine, questions
from eadpr.storage.records import Context, Fold, Positive, Ranked
from eadpr.supervision import answer_matches as matching


class Positives(Section):
    validation: float = Field(ge=0, lt=1)
    seed: int = Field(ge=0)


def find_positives(records: Path, ranking: Path, out: Path, *, positives: Positives, sets: Sets) -> int:
    """Write positives.parquet, folds.parquet and report.json to the folder `out`; return the number of positives.

    `ranking` is a folder with train.parquet and evaluate.parquet; a question in neither gets the source's positives
    only. Raises ValueError if no training question has a positive.
    """
    with engine.connect() as connection:
        matching.register(connection)
        questions.create_asked(connection, records, sets.model_dump())
        _check_apart(connection, sets)
        engine.view(connection, "contexts", records / "contexts.parquet", Context)
        for name in ("train", "evaluate"):
            engine.view(connection, f"ranked_{name}", ranking / f"{name}.parquet", Ranked)
        connection.execute(_ANSWERABLE)
        connection.execute(_GIVEN)
        connection.execute(_RANKED)
        pairs = "SELECT place, passage_id FROM given UNION ALL SELECT place, passage_id FROM ranked"
        matching.read_texts(connection, records / "passages.parquet", f"SELECT passage_id FROM ({pairs})")
        matching.find_matches(connection, pairs)
        connection.execute(_CHOSEN)
        connection.execute(_LACKING)
        names = [name for name in Sets.model_fields if name != "validation" or sets.validation]
        report = {name: engine.first(connection, _COUNTS.format(name=name)) for name in names}
        if report["train"]["questions"] and not report["train"]["positives"]:
            raise ValueError(
                f"none of the {report['train']['questions']:,} training questions ({', '.join(sets.train)}) has a"
                " positive passage: none was given, and no passage ranked by BM25 holds an answer; check the answers or"
                " give positives"
            )
        _split(connection, 0 if sets.validation else positives.validation, positives.seed)
        with files.new_folder(out) as folder:
            count = engine.write(connection, _POSITIVES, folder / "positives.parquet", Positive)
            engine.write(connection, _FOLDS, folder / "folds.parquet", Fold)
            roles = dict(connection.execute(f"SELECT role, count(*) FROM ({_FOLDS}) GROUP BY role").fetchall())
            report["folds"] = {role: roles.get(role, 0) for role in ("train", "validation", "annotator")}
            files.write_json(folder / "report.json", report)
    return count


def _check_apart(connection: engine.Connection, sets: Sets) -> None:
    """Raise ValueError if a question to evaluate on is learnt from or validated with, or one of training validates."""
    pairs = [("train", "evaluate"), ("annotator", "evaluate"), ("validation", "evaluate"), ("train", "validation")]
    for first, second in pairs:
        query = f"SELECT question_id, count(*) OVER () FROM asked WHERE {first} AND {second} ORDER BY place LIMIT 1"
        shared = connection.execute(query).fetchone()
        if shared:
            names = [f"sets.{key} ({', '.join(getattr(sets, key))})" for key in (first, second)]
            raise ValueError(
                f"question {shared[0]!r} and {shared[1] - 1:,} more are in {' and in '.join(names)};"
                f" {'validate with' if second == 'validation' else 'evaluate on'} other questions"
            )


_ANSWERABLE = """
CREATE TABLE answerable AS SELECT place, answer_kind, needles(answers, answer_kind) AS needles
FROM asked JOIN questions ON id = question_id WHERE len(answers) > 0 AND answer_kind <> 'yes-no'
"""
# The source's positives in its order, each passage once.
_GIVEN = f"""
CREATE TABLE given AS SELECT place, passage_id, "order", c.{engine.POSITION} AS pos, gold
FROM contexts c JOIN asked USING (question_id) WHERE role = 'positive'
QUALIFY row_number() OVER (PARTITION BY place, passage_id ORDER BY "order", pos) = 1
"""
# The ranked passages of questions without given positives. If both rankings have a question, `evaluate` counts.
_RANKED = f"""
CREATE TABLE ranked AS SELECT place, passage_id, part, pos FROM (
    SELECT question_id, passage_id, 1 AS part, {engine.POSITION} AS pos FROM ranked_train
    UNION ALL SELECT question_id, passage_id, 0, {engine.POSITION} FROM ranked_evaluate
) JOIN asked USING (question_id) JOIN answerable USING (place) ANTI JOIN given USING (place)
"""
_CHOSEN = """
CREATE TABLE chosen AS SELECT place, passage_id, 'given' AS source, gold, "order", pos FROM given
UNION ALL (
    SELECT place, passage_id, 'bm25', NULL, 0, pos FROM ranked SEMI JOIN matches USING (place, passage_id)
    QUALIFY row_number() OVER (PARTITION BY place ORDER BY part, pos) = 1
)
"""
_POSITIVES = """
SELECT question_id, passage_id, source, gold FROM chosen JOIN asked USING (place) ORDER BY place, "order", pos
"""
# Questions with answers and given positives, none of them with an answer.
_LACKING = """
CREATE TABLE lacking AS
SELECT DISTINCT place FROM given SEMI JOIN answerable USING (place) ANTI JOIN matches USING (place)
"""
_COUNTS = """
SELECT count(*) AS questions, count(*) FILTER (source = 'given') AS with_given_positives,
    count(*) FILTER (source = 'bm25') AS with_bm25_positive, count(*) FILTER (source IS NULL) AS without_positive,
    count(*) FILTER (place IN (FROM lacking)) AS given_positives_hold_no_answer,
    coalesce(sum(positives), 0)::BIGINT AS positives
FROM asked LEFT JOIN (
    SELECT place, min(source) AS source, count(*) AS positives FROM chosen GROUP BY place
) USING (place) WHERE {name}
"""


def _split(connection: engine.Connection, share: float, seed: int) -> None:
    """Make the tables `learners` (questions and their titles) and `carved` (the titles' roles and halves by `carve`);
    `share` of the training questions is for validation."""
    connection.execute(_LEARNERS)
    connection.execute(_TITLES, {"seed": seed})
    sizes, training = connection.execute("SELECT size, training FROM titles ORDER BY number").fetchnumpy().values()
    _, halves = carve(sizes, share)
    in_training = np.flatnonzero(training)
    validation = np.zeros(len(sizes), bool)
    validation[in_training], _ = carve(training[in_training], share)
    carved = pa.table({"number": np.arange(1, len(sizes) + 1), "validation": validation, "half": halves})
    connection.register("carved", carved)


# A question's title is its first positive's; a passage without a title counts as a title of its own.
_LEARNERS = """
CREATE TABLE learners AS
SELECT place, question_id, train, validation AS named,
    if(title = '', 'id ' || passage_id, 'title ' || title) AS title
FROM (
    SELECT place, passage_id FROM chosen QUALIFY row_number() OVER (PARTITION BY place ORDER BY "order", pos) = 1
) JOIN asked USING (place) JOIN texts USING (passage_id) WHERE train OR annotator OR validation
"""
_TITLES = """
CREATE TABLE titles AS
SELECT row_number() OVER (ORDER BY sha256($seed || chr(0) || title)) AS number, title, size, training FROM (
    SELECT title, count(*)::INT AS size, (count(*) FILTER (train))::INT AS training FROM learners GROUP BY title
)
"""
_FOLDS = """
SELECT question_id, half,
    CASE WHEN named THEN 'validation' WHEN NOT train THEN 'annotator' WHEN validation THEN 'validation' ELSE 'train' END
    AS role
FROM learners JOIN titles USING (title) JOIN carved USING (number) ORDER BY place
"""


def carve(sizes: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which titles are for validation, bool, and the half of each, 0 or 1.

    `sizes` are the titles' numbers of questions, in the order of a seeded hash. Validation gets the titles that still
    fit into its `share` of the questions (rounded up, but not all), or the smallest title if none fits and there is
    more than one. Then each title of either role goes to the half with fewer questions.
    """
    total = int(sizes.sum())
    room = target = min(math.ceil(share * total), total - 1)
    validation = np.zeros(len(sizes), bool)
    for i, size in enumerate(sizes):
        if size <= room:
            validation[i] = True
            room -= size
    if target > 0 and not validation.any() and len(sizes) > 1:
        validation[np.argmin(sizes)] = True
    halves = np.zeros(len(sizes), np.int32)
    for role in (False, True):
        ahead = 0  # questions that half 0 has more than half 1
        for i in np.flatnonzero(validation == role):
            halves[i] = ahead > 0
            ahead += -sizes[i] if halves[i] else sizes[i]
    return validation, halves
