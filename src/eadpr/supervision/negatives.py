"""Hard negatives of an arm: passages that a retriever ranks high, the source's negatives, or random passages.

A positive of a question, or a passage with the text of one, is never its negative. The setting `exclude` refuses
passages with an answer in the text (no passage holds a yes or no), passages with the title of a positive, or both.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from eadpr.runtime import files
from eadpr.runtime.section import Section
from eadpr.storage import engine, tables
from eadpr.storage.records import Context, Fold, Negative, Passage, Positive, Question, Ranked
from eadpr.supervision import answer_matches as matching

NOTHING = {
    "ranked": "{ranking}/train.parquet ranks passages for none of the {count:,} training questions, so nothing can be"
    " mined from {ranking.name!r}; rebuild it with `dvc repro`, or name another source in `active`",
    "given": "{records}/contexts.parquet has negatives of none of the {count:,} training questions; train on a set"
    " whose file lists hard_negative_ctxs or negative_ctxs (DPR's), or set negatives.kind: ranked",
}
SORTED = 2**18  # questions whose candidates are ordered at a time: all of ten million spill tens of GB
REASONS = ("is_positive", "text_of_positive", "title_of_positive", "holds_answer", "within_margin")


class Negatives(Section):
    kind: Literal["ranked", "given", "random", "none"]
    depth: int = Field(ge=1)
    skip: int = Field(ge=0)
    keep: int = Field(ge=1)
    exclude: list[Literal["answer", "title"]]
    margin: float | None = Field(ge=0)
    seed: int = Field(ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.skip >= self.depth:
            raise ValueError(f"skip ({self.skip}) leaves nothing of depth ({self.depth})")
        if self.margin is not None and self.kind != "ranked":
            raise ValueError(f"margin needs the scores of a ranking, which kind {self.kind!r} has not; set it to null")
        return self


def mine_negatives(records: Path, positives: Path, ranking: Path, out: Path, *, negatives: Negatives) -> int:
    """Write negatives.parquet and report.json to the folder `out`; return the number of negatives.

    Negatives are mined for the folds train and validation. `ranking` is the folder of BM25's or an arm's ranking: for
    kind `ranked` its train.parquet is read, and its name is the negatives' `source`. The report counts questions,
    negatives and, by reason, refused candidates.
    """
    ranked = negatives.kind == "ranked"
    source = ranking.name if ranked else negatives.kind
    with engine.connect() as connection:
        matching.register(connection)
        engine.view(connection, "questions", records / "questions.parquet", Question)
        engine.view(connection, "folds", positives / "folds.parquet", Fold)
        engine.view(connection, "positives", positives / "positives.parquet", Positive)
        connection.execute(_ASKED)
        connection.execute(_EXCLUDED)
        count = engine.value(connection, "SELECT count(*) FROM asked")
        passages = records / "passages.parquet"
        with_candidates = _list_candidates(connection, passages, ranking / "train.parquet", negatives)
        if count and not with_candidates and negatives.kind in NOTHING:
            raise ValueError(NOTHING[negatives.kind].format(ranking=ranking, records=records, count=count))
        ids = "SELECT passage_id FROM candidates UNION ALL SELECT passage_id FROM excluded"
        matching.read_texts(connection, passages, ids)
        _judge(connection, negatives)
        with files.new_folder(out) as folder:
            mined = _write(connection, folder / "negatives.parquet", source, negatives.keep)
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
_EXCLUDED = "CREATE TABLE excluded AS SELECT place, passage_id FROM asked JOIN positives USING (question_id)"


def _list_candidates(connection: engine.Connection, passages: Path, ranking: Path, negatives: Negatives) -> int:
    """Make the view `candidates`, the best score first, of the ranks above `skip` up to `depth`, and the table `best`
    of positives' scores, which a margin is relative to; return the number of questions that have passages listed."""
    match negatives.kind:
        case "ranked":
            engine.view(connection, "ranked", ranking, Ranked)
        case "given":
            engine.view(connection, "contexts", passages.with_name("contexts.parquet"), Context)
        case "random":
            engine.view(connection, "corpus", passages, Passage)
            connection.register("drawn", _draw(connection, tables.count(passages, Passage), negatives))
    connection.execute(_LISTED[negatives.kind])
    connection.execute(
        f"CREATE VIEW candidates AS FROM listed WHERE rank > {negatives.skip} AND rank <= {negatives.depth}"
    )
    connection.execute(_BEST, {"margin": negatives.margin})
    return engine.value(connection, "SELECT count(DISTINCT place) FROM listed")


def _draw(connection: engine.Connection, total: int, negatives: Negatives) -> pa.RecordBatchReader:
    """Draw `depth` passages of the corpus without repeats, by a generator seeded with the seed and question id."""
    size = min(negatives.depth, total)

    def draw() -> Iterator[pa.RecordBatch]:
        for batch in engine.batches(connection.cursor(), "SELECT place, question_id FROM asked ORDER BY place"):
            rows = []
            for question_id in batch["question_id"].to_pylist():
                digest = hashlib.sha256(f"{negatives.seed}\0{question_id}".encode()).digest()
                rows.append(np.random.default_rng(int.from_bytes(digest)).choice(total, size, replace=False))
            places = np.repeat(batch["place"].to_numpy(), size)
            ranks = np.tile(np.arange(1, size + 1, dtype=np.int32), len(rows))
            yield pa.record_batch([places, np.concatenate(rows), ranks], schema=_DRAWN)

    return pa.RecordBatchReader.from_batches(_DRAWN, draw())


_DRAWN = pa.schema({"place": pa.int64(), "row": pa.int64(), "rank": pa.int32()})
# The passages that each kind lists for a question. Given are its hard negatives in the source's order or, if it has
# none, its other negatives (DPR).
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
CREATE TABLE listed AS SELECT place, id AS passage_id, rank, -rank::FLOAT AS score
FROM drawn JOIN (SELECT {engine.POSITION} AS row, id FROM corpus) USING (row)
""",
    "none": "CREATE TABLE listed (place BIGINT, passage_id VARCHAR, rank INT, score FLOAT)",
}
_BEST = """
CREATE TABLE best AS SELECT place, max(score::DOUBLE) AS best FROM listed
SEMI JOIN excluded USING (place, passage_id) WHERE $margin IS NOT NULL GROUP BY place
"""


def _judge(connection: engine.Connection, negatives: Negatives) -> None:
    """Make the view `judged` of the candidates with the reason to refuse each, null if it may be a negative."""
    connection.execute(f"CREATE TYPE reason AS ENUM {REASONS}")
    connection.execute(_EQUAL)
    settings = {"by_title": "title" in negatives.exclude, "margin": negatives.margin}
    with engine.as_written(connection):
        connection.execute(_CHECKED, settings)
    matching.find_matches(connection, _UNREFUSED if "answer" in negatives.exclude else f"{_UNREFUSED} LIMIT 0")
    connection.execute(f"{_JUDGED}; DROP TABLE texts")


# Texts that several passages share, the positives' shared texts and the positives' titles.
_EQUAL = """
CREATE TABLE shared AS SELECT passage_id, digest FROM texts
SEMI JOIN (SELECT digest FROM texts GROUP BY digest HAVING count(*) > 1) USING (digest);
CREATE TABLE equal_texts AS SELECT DISTINCT place, digest FROM excluded JOIN shared USING (passage_id);
CREATE TABLE titled AS SELECT DISTINCT place, title FROM excluded JOIN texts USING (passage_id) WHERE title <> ''
"""
# The reasons that need no search for answers. The margin lies below the best positive's score; if no positive is
# ranked, every candidate outscores it.
_CHECKED = """
CREATE TABLE checked AS
SELECT c.place, c.passage_id, c.rank, c.score,
    $margin IS NOT NULL AND score >= coalesce(best - $margin, '-infinity') AS outscores, CASE
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
LEFT JOIN best ON best.place = c.place
"""
_UNREFUSED = "SELECT place, passage_id FROM checked WHERE reason IS NULL"
_JUDGED = """
CREATE VIEW judged AS SELECT place, passage_id, rank, score,
    coalesce(reason, CASE WHEN h.place IS NOT NULL THEN 'holds_answer' WHEN outscores THEN 'within_margin' END::reason)
    AS reason
FROM checked LEFT JOIN (SELECT DISTINCT place, passage_id FROM matches) h USING (place, passage_id)
"""
_ORDERED = """
SELECT place, question_id, passage_id, $source AS source, rank FROM judged JOIN asked USING (place)
WHERE reason IS NULL AND place >= $first AND place < $end ORDER BY place, score DESC, passage_id
"""


def _write(connection: engine.Connection, path: Path, source: str, keep: int) -> int:
    """Write the first `keep` negatives of each question; return the number of all."""
    count, places = 0, engine.value(connection, "SELECT 1 + coalesce(max(place), -1) FROM asked")
    with tables.writing(path, Negative) as append:
        for first in range(0, places, SORTED):
            block = {"source": source, "first": first, "end": first + SORTED}
            for batch in first_of_each(engine.batches(connection, _ORDERED, block), "place", keep):
                append(pa.Table.from_batches([batch]).select(Negative._fields).cast(tables.schema(Negative)))
                count += len(batch)
    return count


def first_of_each(batches: Iterable[pa.RecordBatch], key: str, keep: int) -> Iterator[pa.RecordBatch]:
    """Yield the first `keep` rows with each value of the integer column `key`; equal values must be adjacent."""
    last, count = -1, 0  # the key of the last row of the previous batch, and the number of rows with it up to there
    for batch in batches:
        keys, rows = batch[key].to_numpy(), np.arange(len(batch))
        starts = np.maximum.accumulate(np.where(np.diff(keys, prepend=last) != 0, rows, -count))
        yield batch.filter(pa.array(rows - starts < keep))
        last, count = keys[-1], 1 + rows[-1] - starts[-1]
