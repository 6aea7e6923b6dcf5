"""Hard negatives of an arm: passages that a retriever ranks high, the source's negatives, or random passages.

A positive of a question, its own document, or a passage with the text of one but for case and white space, is never
its negative. The setting `exclude` refuses passages with an answer (never yes or no), with a positive's title, or both.
"""

import hashlib
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from eadpr.runtime import files
from eadpr.runtime.section import Section
from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Fold, Negative, Passage, Positive, Question, Ranked
from eadpr.supervision import answer_matches as matching

SORTED = 2**18  # questions whose candidates are ordered at a time: all of ten million spill tens of GB
REASONS = ("is_positive", "text_of_positive", "title_of_positive", "holds_answer")


class Negatives(Section):
    kind: Literal["ranked", "given", "random"]
    depth: int = Field(ge=1)
    keep: int = Field(ge=1)
    exclude: list[Literal["answer", "title"]]
    seed: int = Field(ge=0)


def mine_negatives(records: Path, positives: Path, ranking: Path, out: Path, *, negatives: Negatives) -> int:
    """Write negatives.parquet and report.json to the folder `out`; return the number of negatives.

    Negatives are mined for the folds train and validation. `ranking` is the folder of BM25's or an arm's ranking: for
    kind `ranked` its train.parquet is read, and its name is the negatives' `source`. The report counts questions,
    negatives and, by reason, refused candidates.
    """
    source = ranking.name if negatives.kind == "ranked" else negatives.kind
    with engine.connect() as connection:
        matching.register(connection)
        engine.view(connection, "questions", records / "questions.parquet", Question)
        engine.view(connection, "folds", positives / "folds.parquet", Fold)
        engine.view(connection, "positives", positives / "positives.parquet", Positive)
        engine.view(connection, "contexts", records / "contexts.parquet", Context)
        connection.execute(_ASKED)
        connection.execute(_EXCLUDED)
        count = engine.value(connection, "SELECT count(*) FROM asked")
        passages = records / "passages.parquet"
        with_candidates = _list_candidates(connection, passages, ranking / "train.parquet", negatives)
        if negatives.kind == "given" and count and not with_candidates:
            raise ValueError(
                f"{records}/contexts.parquet has negatives of none of the {count:,} training questions; train on a set"
                " whose file lists hard_negative_ctxs or negative_ctxs (DPR's), or set negatives.kind: ranked"
            )
        ids = "SELECT passage_id FROM candidates UNION ALL SELECT passage_id FROM excluded"
        matching.read_texts(connection, passages, ids)
        _judge(connection, negatives.exclude)
        places = engine.value(connection, "SELECT coalesce(max(place) + 1, 0) FROM asked")
        parameters = {"source": source, "keep": negatives.keep}
        blocks = [parameters | {"first": first, "end": first + SORTED} for first in range(0, places, SORTED)]
        with files.new_folder(out) as folder:
            mined = engine.write(connection, _BEST, folder / "negatives.parquet", Negative, *blocks)
            refused = dict(connection.execute("SELECT reason, count(*) FROM judged GROUP BY reason").fetchall())
            supplied = engine.value(connection, "SELECT count(DISTINCT place) FROM judged WHERE reason IS NULL")
            report = {
                "source": source,
                "questions": count,
                "without_candidates": count - with_candidates,
                "negatives": mined,
                "without_negatives": count - supplied,
                "refused": {reason: refused.get(reason, 0) for reason in REASONS},
            }
            files.write_json(folder / "report.json", report)
    return mined


_ASKED = f"""
CREATE TABLE asked AS
SELECT q.{engine.POSITION} AS place, id AS question_id, answer_kind, needles(answers, answer_kind) AS needles
FROM questions q SEMI JOIN (FROM folds WHERE role <> 'annotator') f ON f.question_id = q.id;
CREATE VIEW answerable AS FROM asked
"""
_EXCLUDED = """
CREATE TABLE excluded AS SELECT place, passage_id FROM asked JOIN (
    SELECT question_id, passage_id FROM positives UNION ALL
    SELECT question_id, passage_id FROM contexts WHERE role = 'own'
) USING (question_id)
"""


def _list_candidates(connection: engine.Connection, passages: Path, ranking: Path, negatives: Negatives) -> int:
    """Make the view `candidates`, the best score first, of ranks up to `depth`; return how many questions have any."""
    match negatives.kind:
        case "ranked":
            engine.view(connection, "ranked", ranking, Ranked)
        case "random":
            engine.view(connection, "corpus", passages, Passage)
            _create_draw(connection, tables.count(passages, Passage), negatives)
    connection.execute(_LISTED[negatives.kind])
    connection.execute(f"CREATE VIEW candidates AS FROM listed WHERE rank <= {negatives.depth}")
    return engine.value(connection, "SELECT count(DISTINCT place) FROM listed")


def _create_draw(connection: engine.Connection, total: int, negatives: Negatives) -> None:
    """Define the function `draw`: `depth` rows of the corpus, none twice, by a hash of the seed and a question's id."""

    def draw(question_id: str) -> list[int]:
        digest = hashlib.sha256(f"{negatives.seed}\0{question_id}".encode()).digest()
        generator = np.random.default_rng(int.from_bytes(digest))
        return generator.choice(total, min(negatives.depth, total), replace=False).tolist()

    connection.create_function("draw", draw, ["VARCHAR"], "BIGINT[]")


# The passages that each kind lists for a question. Given are its hard negatives in order, or else its other ones (DPR).
_LISTED = {
    "ranked": """
CREATE VIEW listed AS SELECT place, passage_id, rank, score FROM ranked JOIN asked USING (question_id)
""",
    "given": f"""
CREATE TABLE listed AS
SELECT place, passage_id, row_number() OVER (PARTITION BY place ORDER BY pos) AS rank, -rank::FLOAT AS score FROM (
    SELECT place, passage_id, min(c.{engine.POSITION}) AS pos, rank() OVER (PARTITION BY place ORDER BY role) AS choice
    FROM contexts c JOIN asked USING (question_id) WHERE role IN ('hard_negative', 'negative')
    GROUP BY place, passage_id, role
) WHERE choice = 1
""",
    "random": f"""
CREATE TABLE listed AS SELECT place, id AS passage_id, rank, -rank::FLOAT AS score FROM (
    SELECT place, unnest(drawn) AS row, unnest(range(1, len(drawn) + 1))::INT AS rank
    FROM (SELECT place, draw(question_id) AS drawn FROM asked)
) JOIN (SELECT {engine.POSITION} AS row, id FROM corpus) USING (row)
""",
}


def _judge(connection: engine.Connection, exclude: list[str]) -> None:
    """Make the view `judged` of the candidates with the reason to refuse each, null if it may be a negative."""
    connection.execute(f"CREATE TYPE reason AS ENUM {REASONS}")
    connection.execute(_EQUAL)
    with engine.as_written(connection):
        connection.execute(_CHECKED, {"by_title": "title" in exclude})
    matching.find_matches(connection, _UNREFUSED if "answer" in exclude else f"{_UNREFUSED} LIMIT 0")
    connection.execute(f"{_JUDGED}; DROP TABLE texts")


# Texts that several passages share, the positives' shared texts and the positives' titles.
_EQUAL = """
CREATE TABLE shared AS SELECT passage_id, digest FROM texts
SEMI JOIN (SELECT digest FROM texts GROUP BY digest HAVING count(*) > 1) USING (digest);
CREATE TABLE equal_texts AS SELECT DISTINCT place, digest FROM excluded JOIN shared USING (passage_id);
CREATE TABLE titled AS SELECT DISTINCT place, title FROM excluded JOIN texts USING (passage_id) WHERE title <> ''
"""
# The reasons that need no search for answers.
_CHECKED = """
CREATE TABLE checked AS
SELECT c.place, c.passage_id, c.rank, c.score, CASE
    WHEN same.place IS NOT NULL THEN 'is_positive'
    WHEN equal_texts.place IS NOT NULL THEN 'text_of_positive'
    WHEN titled.place IS NOT NULL THEN 'title_of_positive'
END::reason AS reason
FROM candidates c
LEFT JOIN (SELECT DISTINCT place, passage_id FROM excluded) same
    ON same.place = c.place AND same.passage_id = c.passage_id
LEFT JOIN shared ON shared.passage_id = c.passage_id
LEFT JOIN equal_texts ON equal_texts.place = c.place AND equal_texts.digest = shared.digest
LEFT JOIN (SELECT passage_id, title FROM texts WHERE $by_title) t ON t.passage_id = c.passage_id
LEFT JOIN titled ON titled.place = c.place AND titled.title = t.title
"""
_UNREFUSED = "SELECT place, passage_id FROM checked WHERE reason IS NULL"
_JUDGED = """
CREATE VIEW judged AS SELECT place, passage_id, rank, score,
    coalesce(reason, CASE WHEN h.place IS NOT NULL THEN 'holds_answer' END::reason) AS reason
FROM checked LEFT JOIN (SELECT DISTINCT place, passage_id FROM matches) h USING (place, passage_id)
"""
_BEST = """
SELECT question_id, passage_id, $source AS source, rank FROM judged JOIN asked USING (place)
WHERE reason IS NULL AND place >= $first AND place < $end
QUALIFY row_number() OVER (PARTITION BY place ORDER BY score DESC, passage_id) <= $keep
ORDER BY place, score DESC, passage_id
"""
