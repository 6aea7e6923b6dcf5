"""Hard negatives of an arm: passages that a retriever ranks high, that the source gives, or any at random.

A passage that is a positive of a question, or has the text of one, is never its negative. The setting `exclude` keeps
away those whose text holds an answer (no passage holds a yes or no), those that have the title of a positive, or both.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from eadpr.runtime import files
from eadpr.runtime.section import Section
from eadpr.storage import engine, tables
from eadpr.storage.rankings import PROMOTED
from eadpr.storage.records import Context, Fold, Negative, Passage, Positive, Question, Ranked
from eadpr.supervision import answer_matches as matching

NOTHING = {
    "ranked": "{ranking}/train.parquet ranks passages for none of the {asked:,} training questions, so nothing can be"
    " mined from {ranking.name!r}; rebuild it with `dvc repro`, or name another source in `active`",
    "given": "{records}/contexts.parquet has negatives of none of the {asked:,} training questions; train on a set"
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


def mine(records: Path, positives: Path, ranking: Path, out: Path, *, negatives: Negatives) -> int:
    """Write negatives.parquet and report.json to the folder `out`; returns the number of negatives.

    Questions are those of the folds train and validation. `ranking` is the folder of BM25's or an arm's ranking: where
    `kind` is `ranked`, its train.parquet is read and its name is the negatives' `source`; positives that it brings
    (stage `denoise`) are handed on. The report counts questions, negatives and, by reason, refused candidates.
    """
    ranked = negatives.kind == "ranked"
    source = ranking.name if ranked else negatives.kind
    promoted = ranked and (ranking / PROMOTED).exists()
    with engine.connect() as connection:
        matching.register(connection)
        engine.view(connection, "questions", records / "questions.parquet", Question)
        engine.view(connection, "folds", positives / "folds.parquet", Fold)
        engine.view(connection, "positives", positives / "positives.parquet", Positive)
        engine.view(connection, "promoted", (ranking if promoted else positives) / "positives.parquet", Positive)
        connection.execute(_ASKED)
        connection.execute(_OWN + _PROMOTED * promoted)
        asked = engine.value(connection, "SELECT count(*) FROM asked")
        seen = {"ranked": _ranked, "given": _given, "random": _random, "none": _none}[negatives.kind](
            connection, records / "passages.parquet", ranking / "train.parquet", negatives
        )
        if asked and not seen and negatives.kind in NOTHING:
            raise ValueError(NOTHING[negatives.kind].format(ranking=ranking, records=records, asked=asked))
        wanted = "SELECT passage_id FROM candidates UNION ALL SELECT passage_id FROM own"
        matching.read_passages(connection, records / "passages.parquet", wanted)
        _judge(connection, negatives)
        with files.new_folder(out) as folder:
            count = _write(connection, folder / "negatives.parquet", source, negatives.keep)
            if promoted:
                shutil.copyfile(ranking / PROMOTED, folder / PROMOTED)
            report = {"source": source, "questions": asked, "without_candidates": asked - seen, "negatives": count}
            files.write_json(folder / "report.json", report | _refused(connection, asked))
    return count


_ASKED = f"""
CREATE TABLE asked AS
SELECT q.{engine.POSITION} AS place, id AS question_id, answer_kind, needles(answers, answer_kind) AS needles
FROM questions q SEMI JOIN (FROM folds WHERE role <> 'annotator') f ON f.question_id = q.id;
CREATE VIEW sought AS FROM asked
"""
_OWN = "CREATE TABLE own AS SELECT place, passage_id FROM asked JOIN positives USING (question_id)"
_PROMOTED = " UNION ALL SELECT place, passage_id FROM asked JOIN promoted USING (question_id)"


def _ranked(connection: engine.Connection, passages: Path, ranking: Path, negatives: Negatives) -> int:
    """Ranks above `skip` up to `depth` are candidates, the best score first. Returns how many questions are ranked."""
    engine.view(connection, "ranked", ranking, Ranked)
    connection.execute(
        "CREATE VIEW ranks AS SELECT place, passage_id, rank, score FROM ranked JOIN asked USING (question_id)"
    )
    depths = f"rank > {negatives.skip} AND rank <= {negatives.depth}"
    connection.execute(f"CREATE VIEW candidates AS FROM ranks WHERE {depths}")
    connection.execute(
        "CREATE TABLE best AS SELECT place, max(score::DOUBLE) AS best FROM ranks"
        " SEMI JOIN own USING (place, passage_id) WHERE $margin IS NOT NULL GROUP BY place",
        {"margin": negatives.margin},
    )
    return engine.value(connection, "SELECT count(DISTINCT place) FROM ranks")


def _given(connection: engine.Connection, passages: Path, ranking: Path, negatives: Negatives) -> int:
    """A question's hard negatives in the source's order; where it has none, its other negatives (DPR). Returns how many
    questions have any."""
    engine.view(connection, "contexts", passages.with_name("contexts.parquet"), Context)
    _none(connection, passages, ranking, negatives)
    connection.execute(_LISTED)
    depths = f"rank > {negatives.skip} AND rank <= {negatives.depth}"
    connection.execute(f"INSERT INTO candidates SELECT place, passage_id, rank, -rank FROM listed WHERE {depths}")
    return engine.value(connection, "SELECT count(DISTINCT place) FROM listed")


_LISTED = f"""
CREATE TABLE listed AS SELECT place, passage_id, row_number() OVER (PARTITION BY place ORDER BY pos) AS rank FROM (
    SELECT place, passage_id, min(c.{engine.POSITION}) AS pos, rank() OVER (PARTITION BY place ORDER BY role) AS choice
    FROM contexts c JOIN asked USING (question_id) WHERE role IN ('hard_negative', 'negative')
    GROUP BY place, passage_id, role
) WHERE choice = 1
"""


def _random(connection: engine.Connection, passages: Path, ranking: Path, negatives: Negatives) -> int:
    """`depth` passages of the whole corpus, drawn without repeats by a generator that seed and question id decide."""
    total = tables.count(passages, Passage)
    size = min(negatives.depth, total)

    def drawn() -> Iterator[pa.RecordBatch]:
        for batch in engine.batches(connection.cursor(), "SELECT place, question_id FROM asked ORDER BY place"):
            keys = (f"{negatives.seed}\0{question_id}" for question_id in batch["question_id"].to_pylist())
            digests = (hashlib.sha256(key.encode()).digest() for key in keys)
            rows = [np.random.default_rng(int.from_bytes(one)).choice(total, size, replace=False) for one in digests]
            places = np.repeat(batch["place"].to_numpy(), size)
            ranks = np.tile(np.arange(1, size + 1, dtype=np.int32), len(rows))
            yield pa.record_batch([places, np.concatenate(rows), ranks], schema=_DRAWN)

    _none(connection, passages, ranking, negatives)
    engine.view(connection, "corpus", passages, Passage)
    connection.register("drawn", pa.RecordBatchReader.from_batches(_DRAWN, drawn()))
    connection.execute(
        "INSERT INTO candidates SELECT place, id, rank, -rank"
        f" FROM drawn JOIN (SELECT {engine.POSITION} AS row, id FROM corpus) USING (row)"
    )
    return engine.value(connection, "SELECT count(*) FROM asked")


_DRAWN = pa.schema({"place": pa.int64(), "row": pa.int64(), "rank": pa.int32()})


def _none(connection: engine.Connection, passages: Path, ranking: Path, negatives: Negatives) -> int:
    connection.execute("CREATE TABLE candidates (place BIGINT, passage_id VARCHAR, rank INT, score FLOAT)")
    connection.execute("CREATE TABLE best (place BIGINT, best DOUBLE)")
    return 0


def _judge(connection: engine.Connection, negatives: Negatives) -> None:
    """Make the view `judged` of the candidates: what each is refused for, null where it may be a negative."""
    connection.execute(f"CREATE TYPE reason AS ENUM {REASONS}")
    connection.execute(_ALIKE)
    settings = {"by_title": "title" in negatives.exclude, "margin": negatives.margin}
    with engine.as_written(connection):
        connection.execute(_FORESEEN, settings)
    matching.search(connection, _UNFORESEEN if "answer" in negatives.exclude else f"{_UNFORESEEN} LIMIT 0")
    connection.execute(f"{_JUDGED}; DROP TABLE words")


# A text that only one passage has is known by the passage's id.
_ALIKE = """
CREATE TABLE shared AS SELECT passage_id, digest FROM words
SEMI JOIN (SELECT digest FROM words GROUP BY digest HAVING count(*) > 1) USING (digest);
CREATE TABLE alike AS SELECT DISTINCT place, digest FROM own JOIN shared USING (passage_id);
CREATE TABLE titled AS SELECT DISTINCT place, title FROM own JOIN words USING (passage_id) WHERE title <> ''
"""
# What each candidate is refused for as far as no text need be read. A margin lies below the best positive's score;
# where no positive is ranked, every candidate outscores it.
_FORESEEN = """
CREATE TABLE foreseen AS
SELECT c.place, c.passage_id, c.rank, c.score,
    $margin IS NOT NULL AND score >= coalesce(best - $margin, '-infinity') AS outscores, CASE
    WHEN same.place IS NOT NULL THEN 'is_positive'
    WHEN alike.place IS NOT NULL THEN 'text_of_positive'
    WHEN titled.place IS NOT NULL THEN 'title_of_positive'
END::reason AS reason
FROM candidates c
LEFT JOIN (SELECT DISTINCT place, passage_id FROM own) same ON same.place = c.place AND same.passage_id = c.passage_id
LEFT JOIN shared ON shared.passage_id = c.passage_id
LEFT JOIN alike ON alike.place = c.place AND alike.digest = shared.digest
LEFT JOIN (SELECT passage_id, title FROM words WHERE $by_title) words ON words.passage_id = c.passage_id
LEFT JOIN titled ON titled.place = c.place AND titled.title = words.title
LEFT JOIN best ON best.place = c.place
"""
_UNFORESEEN = "SELECT place, passage_id FROM foreseen WHERE reason IS NULL"
_JUDGED = """
CREATE VIEW judged AS SELECT place, passage_id, rank, score,
    coalesce(reason, CASE WHEN h.place IS NOT NULL THEN 'holds_answer' WHEN outscores THEN 'within_margin' END::reason)
    AS reason
FROM foreseen LEFT JOIN (SELECT DISTINCT place, passage_id FROM holding) h USING (place, passage_id)
"""
_ORDERED = """
SELECT place, question_id, passage_id, $source AS source, rank FROM judged JOIN asked USING (place)
WHERE reason IS NULL AND place >= $first AND place < $end ORDER BY place, score DESC, passage_id
"""


def _write(connection: engine.Connection, path: Path, source: str, keep: int) -> int:
    """Write the first `keep` of each question's negatives; returns how many there are."""
    count, places = 0, engine.value(connection, "SELECT 1 + coalesce(max(place), -1) FROM asked")
    with tables.writing(path, Negative) as append:
        for first in range(0, places, SORTED):
            given = {"source": source, "first": first, "end": first + SORTED}
            for batch in first_of_each(engine.batches(connection, _ORDERED, given), "place", keep):
                append(pa.Table.from_batches([batch]).select(Negative._fields).cast(tables.schema(Negative)))
                count += len(batch)
    return count


def first_of_each(found: Iterable[pa.RecordBatch], key: str, keep: int) -> Iterator[pa.RecordBatch]:
    """The first `keep` of the rows with the same integer `key`, which stand together."""
    last, before = -1, 0  # the key of the last row and how many rows with it there were
    for batch in found:
        keys, rows = batch[key].to_numpy(), np.arange(len(batch))
        starts = np.maximum.accumulate(np.where(np.diff(keys, prepend=last) != 0, rows, -before))
        yield batch.filter(pa.array(rows - starts < keep))
        last, before = keys[-1], 1 + rows[-1] - starts[-1]


def _refused(connection: engine.Connection, asked: int) -> dict[str, Any]:
    counts = dict(connection.execute("SELECT reason, count(*) FROM judged GROUP BY reason").fetchall())
    supplied = engine.value(connection, "SELECT count(DISTINCT place) FROM judged WHERE reason IS NULL")
    return {
        "without_negatives": asked - supplied, "refused": {reason: counts.get(reason, 0) for reason in REASONS},
    }  # fmt: skip
