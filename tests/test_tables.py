"""Tables of records: equal rows come back, equal rows give equal bytes, damage is named."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.storage import tables
from eadpr.storage.records import Evidence, Passage, Ranked, ScoredSpan, Span

spans = st.none() | st.lists(st.builds(Span, st.integers(0, 99), st.integers(100, 200)), max_size=3)
passages = st.lists(st.builds(Passage, st.text(), st.text(), st.text(), spans), max_size=20)


@given(passages)
def test_records_come_back_as_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "passages.parquet"
    assert (tables.write(path, Passage, rows), list(tables.rows(path, Passage))) == (len(rows), rows)
    assert tables.count(path, Passage) == len(rows)


def test_nested_records_with_missing_values_come_back(tmp_path):
    row = Evidence("q", "p", "pseudo", "x", [ScoredSpan(0, 4, 1.5), ScoredSpan(4, 9, None)], [0], None)
    tables.write(tmp_path / "e.parquet", Evidence, [row])
    assert list(tables.rows(tmp_path / "e.parquet", Evidence)) == [row]


def as_dictionary(row):
    """Convert a record to the dictionaries that arrow takes and returns."""
    nested = {name: value for name, value in row._asdict().items() if isinstance(value, list)}
    return row._asdict() | {name: [item._asdict() for item in value] for name, value in nested.items()}


@given(passages, st.integers(0, 20), st.integers(0, 20))
def test_records_convert_as_arrow_converts_dictionaries(rows, start, length):
    expected = pa.Table.from_pylist([as_dictionary(row) for row in rows], schema=tables.schema(Passage))
    table = tables.as_table(Passage, rows)
    table.validate(full=True)
    assert table.equals(expected)
    for batch in expected.to_batches():
        part = batch.slice(start, length)
        assert list(tables.records(part, Passage)) == rows[start : start + length]
        odd = pa.array([i % 2 == 1 for i in range(len(part))], pa.bool_())
        assert list(tables.records(part.filter(odd), Passage)) == rows[start : start + length][1::2]


@pytest.mark.parametrize("size", [3, 100])
def test_a_file_is_read_from_any_row(tmp_path, monkeypatch, size):
    monkeypatch.setattr(tables, "ROW_GROUP", 4)
    rows = [Ranked(str(i), "p", i, i / 7) for i in range(10)]
    path = tmp_path / "rankings.parquet"
    tables.write(path, Ranked, rows)
    for first in range(12):
        ranks = [i for batch in tables.batches(path, Ranked, size=size, first=first) for i in batch["rank"].to_pylist()]
        assert ranks == list(range(first, 10))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_bytes_depend_on_the_rows_not_on_how_they_arrive(tmp_path_factory, sizes):
    folder = tmp_path_factory.mktemp("tables")
    rows = [Ranked(str(i), "p", i % 100, i / 7) for i in range(sum(sizes))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROW_GROUP", 16)
        tables.write(folder / "once.parquet", Ranked, rows)
        with tables.writing(folder / "pieces.parquet", Ranked) as append:
            for size in sizes:
                append(tables.as_table(Ranked, rows[:size]))
                rows = rows[size:]
    assert (folder / "once.parquet").read_bytes() == (folder / "pieces.parquet").read_bytes()


@pytest.mark.parametrize(("columns", "message"), [
    ({"question_id": ["q"], "passage_id": ["p"], "score": [0.5]}, r"r\.parquet: column 'rank' is None"),
    ({"question_id": [1], "passage_id": ["p"], "rank": [1], "score": [0.5]}, "column 'question_id' is int64"),
    (b"PAR1 but no more", r"r\.parquet is not a readable Parquet file"),
])  # fmt: skip
def test_a_file_that_is_no_such_table_is_named(tmp_path, columns, message):
    path = tmp_path / "r.parquet"
    with pytest.raises(FileNotFoundError, match=r"r\.parquet does not exist; run `dvc repro`"):
        tables.read(path, Ranked)
    os.mkfifo(tmp_path / "pipe")  # which would be waited for
    with pytest.raises(FileNotFoundError, match=r"pipe is no file"):
        tables.read(tmp_path / "pipe", Ranked)
    if isinstance(columns, bytes):
        path.write_bytes(columns)
    else:
        pq.write_table(pa.table(columns), path)
    with pytest.raises(ValueError, match=message):
        tables.read(path, Ranked)
