"""Stage `denoise`: keep the ranked passages that a reader is sure are negatives (RocketQA's rule).

Many passages without a known answer still answer the question. A reader that sees question and passage together scores
each, 0 to 1; negatives are mined from passages below a threshold (Qu et al., 2021: 0.1), and passages above another may
become positives (0.9).
"""

from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from eadpr.runtime import files
from eadpr.runtime.section import Section
from eadpr.storage import engine
from eadpr.storage.rankings import PROMOTED
from eadpr.storage.records import Positive, Ranked

SOURCE = "reader"  # of the new positives
REASONS = ("unscored", "doubtful", "positive")


class PassageScore(NamedTuple):
    """A reader's confidence, 0 to 1, that the passage answers the question; rows are in the order of the ranking."""

    question_id: str
    passage_id: str
    score: float


class Denoise(Section):
    below: float = Field(gt=0, le=1)
    above: float | None = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.above is not None and self.above < self.below:
            raise ValueError(f"above ({self.above}) must not be less than below ({self.below})")
        return self


def denoise(positives: Path, ranking: Path, scores: Path, out: Path, *, settings: Denoise) -> int:
    """Write train.parquet, report.json and, with `above`, the new positives to the folder `out`.

    `ranking` is a folder with a train.parquet; ranks stay as they are, with gaps. A question's positives stay whatever
    their scores, because margins are relative to them. A passage without a score is dropped, since it may be a
    positive. Raises ValueError if no ranked passage has a score. Return the number of remaining rows.
    """
    train = ranking / "train.parquet"
    with engine.connect() as connection:
        engine.view(connection, "positives", positives / "positives.parquet", Positive)
        engine.view(connection, "ranked", train, Ranked)
        engine.view(connection, "scores", scores, PassageScore)
        connection.execute(_JUDGED, settings.model_dump())
        counts = engine.first(connection, _COUNTS)
        if counts["ranked"] and not counts.pop("scored"):
            raise ValueError(
                f"{scores} scores none of the {counts['ranked']:,} passages that {train} ranks;"
                " score that ranking with a reader, or name the ranking that was scored under `denoised`"
            )
        with files.new_folder(out) as folder:
            count = engine.write(connection, _REMAINING, folder / "train.parquet", Ranked)
            if settings.above is not None:
                engine.write(connection, _PROMOTED, folder / PROMOTED, Positive, {"source": SOURCE})
            dropped = {reason: counts[reason] for reason in REASONS}
            report = {"of": ranking.name, "ranked": counts["ranked"], "kept": count, "out": dropped}
            files.write_json(folder / "report.json", report)
    return count


_JUDGED = f"""
CREATE TABLE judged AS
SELECT r.*, r.{engine.POSITION} AS pos, s.score AS sure, CASE
    WHEN own.question_id IS NOT NULL OR s.score < $below::DOUBLE THEN NULL
    WHEN s.score IS NULL THEN 'unscored'
    WHEN s.score > $above::DOUBLE THEN 'positive'
    ELSE 'doubtful'
END AS reason
FROM ranked r LEFT JOIN scores s USING (question_id, passage_id)
LEFT JOIN (SELECT DISTINCT question_id, passage_id FROM positives) own
    ON own.question_id = r.question_id AND own.passage_id = r.passage_id
"""
_COUNTS = f"""
SELECT count(*) AS ranked, count(sure) AS scored,
    {", ".join(f"count(*) FILTER (reason = '{reason}') AS {reason}" for reason in REASONS)} FROM judged
"""
_REMAINING = "SELECT question_id, passage_id, rank, score FROM judged WHERE reason IS NULL ORDER BY pos"
_PROMOTED = """
SELECT question_id, passage_id, $source AS source, NULL::STRUCT("start" INT, "end" INT)[] AS gold
FROM judged JOIN (SELECT question_id, min(pos) AS place FROM judged GROUP BY question_id) USING (question_id)
WHERE reason = 'positive' ORDER BY place, sure DESC, passage_id
"""
