"""Draw the test questions of a user's own files."""

from collections.abc import Sequence
from pathlib import Path

from eadpr.corpus.rows import digest
from eadpr.corpus.sources import File
from eadpr.storage import engine

# A question's article is the title of its first positive, or else the document that this is a piece of.
_HELD_OUT = """
CREATE TABLE drawn AS SELECT n, file, draw(coalesce(title, question)) AS draw FROM (
    SELECT a.n, file, question, CASE p.title WHEN '' THEN split_part(p.id, '#', 1) ELSE p.title END AS title
    FROM asked a
    LEFT JOIN (SELECT n, min_by(passage_id, c) AS passage_id FROM named WHERE role = 'positive' GROUP BY n) f USING (n)
    LEFT JOIN passages p ON p.id = f.passage_id
    WHERE a.split IS NULL
);
UPDATE asked SET split = CASE WHEN tested(draw, d.file) THEN 'test' ELSE 'train' END FROM drawn d WHERE d.n = asked.n
"""
_SPLITS = "SELECT DISTINCT split FROM asked WHERE n <= (SELECT max(n) FROM asked WHERE file = $file)"
_MOVE = """
UPDATE asked SET split = $split
WHERE n IN (SELECT n FROM drawn WHERE draw = (SELECT {}(draw) FROM drawn WHERE file = $file))
"""
_NEAREST = {"train": "max", "test": "min"}  # the draw that is the last to go to the other split


def hold_out(connection: engine.Connection, files: Sequence[tuple[File, Path]]) -> None:
    """Draw the splits that the table `asked` leaves open, a file's `test_share` of them for testing, by whole articles
    where positives are given; the tables `named` and `passages` tell these. The draw of a title is always the same. A
    split that would be empty gets one title."""
    shares = {file.name: (path, file.test_share) for file, path in files if file.test_share is not None}
    if not shares:
        return
    connection.create_function("draw", digest, ["VARCHAR"], "UBIGINT")
    types = ["UBIGINT", "VARCHAR"]
    connection.create_function("tested", lambda draw, file: draw < shares[file][1] * 2**64, types, "BOOLEAN")
    connection.execute(_HELD_OUT)
    for name, (path, _) in shares.items():
        for split in (empty := _empty(connection, name)):
            connection.execute(_MOVE.format(_NEAREST[split]), {"split": split, "file": name})
        if _empty(connection, name):
            reason = "a column split is taken as it is, else titles are held out whole"
            advice = "give questions about another title too, or write train or test in a column split"
            raise ValueError(f"{path}: no question is left for {empty[0]}: {reason}; {advice}")


def _empty(connection: engine.Connection, file: str) -> list[str]:
    splits = {row["split"] for row in engine.rows(connection, _SPLITS, {"file": file})}
    return [split for split in _NEAREST if split not in splits]
