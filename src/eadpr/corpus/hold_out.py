"""Draw the test questions of a user's own files."""

from collections.abc import Sequence
from pathlib import Path

from eadpr.corpus.rows import digest
from eadpr.corpus.sources import File
from eadpr.storage import engine

# A question's article is the title of its first positive, or else the document that this is a piece of.
_HELD_OUT = """
UPDATE asked SET split = CASE WHEN held_out(coalesce(t.title, question), file) THEN 'test' ELSE 'train' END FROM (
    SELECT a.n, CASE p.title WHEN '' THEN split_part(p.id, '#', 1) ELSE p.title END AS title
    FROM asked a
    LEFT JOIN (SELECT n, min_by(passage_id, c) AS passage_id FROM named WHERE role = 'positive' GROUP BY n) f USING (n)
    LEFT JOIN passages p ON p.id = f.passage_id
    WHERE a.split IS NULL
) t WHERE t.n = asked.n
"""
_OF_SPLIT = "SELECT 1 FROM asked WHERE split = $split AND n <= (SELECT max(n) FROM asked WHERE file = $file) LIMIT 1"


def hold_out(connection: engine.Connection, files: Sequence[tuple[File, Path]]) -> None:
    """Draw the splits that the table `asked` leaves open, a file's `test_share` of them for testing, by whole articles
    where positives are given; the tables `named` and `passages` tell these. The draw of a title is always the same."""
    shares = {file.name: (path, file.test_share) for file, path in files if file.test_share is not None}
    if not shares:
        return
    connection.create_function(
        "held_out", lambda title, file: digest(title) < shares[file][1] * 2**64, ["VARCHAR", "VARCHAR"], "BOOLEAN"
    )
    connection.execute(_HELD_OUT)
    for name, (path, share) in shares.items():
        for split in ("train", "test"):
            if engine.first(connection, _OF_SPLIT, {"split": split, "file": name}):
                continue
            raise ValueError(
                f"{path}: a share of {share} (test_share) leaves no question for {split}, as whole titles are held out,"
                " and a column split is taken as it is; give more questions, --test-questions, or another share"
            )
