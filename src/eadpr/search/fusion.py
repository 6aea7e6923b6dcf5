"""Fusion of two rankings by reciprocal rank, or by a weighted sum of scores with the best weight on validation."""

from pathlib import Path

from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.search.config import Fuse
from eadpr.storage import engine, questions
from eadpr.storage.records import Fold, Positive, Ranked
from eadpr.supervision import answer_matches as matching

CHOSEN = "fusion.json"


def fuse(
    records: Path, positives: Path, first: Path, second: Path, out: Path, *, settings: Fuse, sets: Sets, depth: int
) -> dict[str, float]:
    """Write train.parquet and evaluate.parquet to the folder `out`, `depth` passages per question at most.

    `first` and `second` are folders of rankings. Returns, and writes to fusion.json, the weight and the validation
    questions' mean reciprocal rank with every weight; empty for `reciprocal`. Raises ValueError if a weight must be
    chosen and there is no validation question.
    """
    choice: dict[str, float] = {}
    shares = {"first": 1.0, "second": 1.0}
    with engine.connect() as connection, files.new_folder(out) as folder:
        questions.create_asked(connection, records, {"train": sets.learnt, "evaluate": sets.evaluate})
        for part in ("train", "evaluate"):
            for side, ranking in (("first", first), ("second", second)):
                engine.view(connection, f"{side}_{part}", ranking / f"{part}.parquet", Ranked)
                worth = _WORTH[settings.by].format(k=settings.k)
                connection.execute(_SIDE.format(side=side, part=part, worth=worth))
            connection.execute(_BOTH.format(part=part))
        if settings.by == "weighted":
            choice = _choose_weight(connection, records, positives, settings, depth)
            shares = _shares(choice["weight"])
        files.write_json(folder / CHOSEN, choice)
        for part in ("train", "evaluate"):
            ranked = f"SELECT * FROM ({_FUSED.format(part=part)}) JOIN asked USING (place) ORDER BY place, rank"
            engine.write(connection, ranked, folder / f"{part}.parquet", Ranked, shares | {"depth": depth})
    return choice


def _shares(weight: float) -> dict[str, float]:
    return {"first": 1 - weight, "second": weight}


# The value of each passage in a ranking: 1 / (k + rank) (Cormack et al., 2009: k = 60), or its score scaled to
# [0, 1] over the ranking, 1 where all scores are equal.
_WORTH = {
    "reciprocal": "1 / ({k} + row_number() OVER (PARTITION BY place ORDER BY score DESC, passage_id))",
    "weighted": "if(high > low, (score - low) / (high - low), 1)",
}
_SIDE = """
CREATE VIEW worth_{side}_{part} AS SELECT place, passage_id, {worth} AS worth FROM (
    SELECT place, passage_id, score::DOUBLE AS score,
        min(score::DOUBLE) OVER (PARTITION BY place) AS low, max(score::DOUBLE) OVER (PARTITION BY place) AS high
    FROM {side}_{part} JOIN asked USING (question_id) WHERE {part}
)
"""
# A passage that a ranking lacks gets 0 from it, as the last one does if scores are scaled.
_BOTH = """
CREATE TABLE both_{part} AS
SELECT place, passage_id, coalesce(f.worth, 0) AS first, coalesce(s.worth, 0) AS second
FROM worth_first_{part} f FULL JOIN worth_second_{part} s USING (place, passage_id)
"""
_FUSED = """
SELECT place, passage_id, score, rank FROM (
    SELECT *, row_number() OVER (PARTITION BY place ORDER BY score DESC, passage_id) AS rank
    FROM (SELECT *, $first::DOUBLE * first + $second::DOUBLE * second AS score FROM both_{part})
) WHERE rank <= $depth
"""


def _choose_weight(
    connection: engine.Connection, records: Path, positives: Path, settings: Fuse, depth: int
) -> dict[str, float]:
    """Return the best weight, the least of equals, and each weight's mean reciprocal rank of the first hit.

    A hit is defined as in `evaluate`.
    """
    engine.view(connection, "folds", positives / "folds.parquet", Fold)
    engine.view(connection, "positives", positives / "positives.parquet", Positive)
    connection.execute(_JUDGED)
    count = engine.value(connection, "SELECT count(*) FROM judged")
    if not count:
        raise ValueError(
            "fuse.by: weighted chooses its weight on validation questions, and there are none; raise"
            " positives.validation, name sets.validation, or set fuse.by to reciprocal"
        )
    matching.register(connection)
    connection.execute(_ANSWERABLE)
    pairs = "SELECT place, passage_id FROM both_train SEMI JOIN answerable USING (place)"
    matching.read_texts(connection, records / "passages.parquet", f"SELECT passage_id FROM ({pairs})")
    matching.find_matches(connection, pairs)
    connection.execute(_HITS)
    query = _RANKS.format(_FUSED.format(part="train"))
    means = {
        weight: engine.value(connection, query, _shares(weight) | {"depth": depth}) / count
        for weight in settings.weights
    }
    best = max(means, key=lambda weight: (means[weight], -weight))
    return {"weight": best} | {f"mrr_{weight:g}": float(f"{mean:.7g}") for weight, mean in means.items()}


_JUDGED = """
CREATE TABLE judged AS SELECT place, question_id, answers, answer_kind, hops
FROM asked JOIN folds USING (question_id) JOIN questions ON id = question_id WHERE train AND role = 'validation'
"""
_ANSWERABLE = """
CREATE TABLE answerable AS SELECT place, answer_kind, needles(answers, answer_kind) AS needles
FROM judged WHERE len(answers) > 0 AND answer_kind <> 'yes-no'
"""
# Passages that hold an answer; if no text can, the source's.
_HITS = """
CREATE TABLE hits AS SELECT place, passage_id FROM matches
UNION SELECT place, passage_id FROM judged JOIN positives USING (question_id) ANTI JOIN answerable USING (place)
WHERE source = 'given'
UNION SELECT place, unnest(hops) FROM judged ANTI JOIN answerable USING (place)
"""
_RANKS = """
SELECT coalesce(sum(1 / first ORDER BY place), 0) FROM (
    SELECT place, min(rank) AS first FROM ({}) SEMI JOIN hits USING (place, passage_id) GROUP BY place
)
"""
