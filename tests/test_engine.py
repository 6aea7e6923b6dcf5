"""DuckDB behind our tables: checked on read, ordered on write, bounded in memory."""

import platform
import subprocess

import pytest

from eadpr.storage import engine, tables
from eadpr.storage.records import Negative, Passage, Positive, Span

ROWS = [Negative(f"q{i % 7}", f"p{i}", "bm25", i) for i in range(50_000)]


def test_an_ordered_query_writes_the_bytes_of_its_rows(tmp_path):
    tables.write(tmp_path / "in.parquet", Negative, ROWS)
    with engine.connect() as connection:
        engine.view(connection, "source", tmp_path / "in.parquet", Negative)
        query = f"SELECT * FROM source WHERE rank >= $least ORDER BY question_id, {engine.POSITION}"
        count = engine.write(connection, query, tmp_path / "out.parquet", Negative, {"least": 10_000})
    expected = sorted(ROWS[10_000:], key=lambda row: row.question_id)
    tables.write(tmp_path / "expected.parquet", Negative, expected)
    assert count == 40_000
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "expected.parquet").read_bytes()


def test_lists_of_records_pass_through_null_and_empty_ones_too(tmp_path):
    rows = [Positive("q", "p", "given", gold) for gold in (None, [], [Span(1, 2), Span(3, 4)])]
    tables.write(tmp_path / "in.parquet", Positive, rows)
    with engine.connect() as connection:
        engine.view(connection, "source", tmp_path / "in.parquet", Positive)
        query = f"SELECT * FROM source ORDER BY {engine.POSITION}"
        engine.write(connection, query, tmp_path / "out.parquet", Positive)
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "in.parquet").read_bytes()


def test_a_file_name_is_no_pattern_and_another_table_is_refused_by_name(tmp_path):
    folder = tmp_path / "a*[b]?"
    tables.write(folder / "in.parquet", Negative, ROWS[:3])
    tables.write(tmp_path / "aXb" / "in.parquet", Negative, ROWS)
    with engine.connect() as connection:
        engine.view(connection, "source", folder / "in.parquet", Negative)
        assert engine.value(connection, "SELECT count(*) FROM source") == 3
        with pytest.raises(ValueError, match=r"in\.parquet: column 'id' is None"):
            engine.view(connection, "wrong", folder / "in.parquet", Passage)


def test_a_sort_larger_than_memory_spills_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_MEMORY", "64MiB")
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path / "cache"))
    with engine.connect() as connection:
        query = "SELECT i, repeat('x', 100) AS s FROM range(2000000) t(i) ORDER BY hash(i), i"
        batches = engine.batches(connection, query)
        count = len(next(batches))
        assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
        assert count + sum(map(len, batches)) == 2_000_000
    assert list((tmp_path / "cache").glob("spill-*")) == []


def test_a_limit_that_is_no_size_or_too_low_is_named(monkeypatch):
    monkeypatch.setenv("EADPR_MEMORY", "plenty")
    with pytest.raises(ValueError, match="EADPR_MEMORY is 'plenty', which is no size"), engine.connect():
        pass
    monkeypatch.setenv("EADPR_MEMORY", "16MiB")
    with pytest.raises(MemoryError, match="set EADPR_MEMORY"), engine.connect() as connection:
        list(engine.batches(connection, "SELECT list(repeat('x', 1000) || i) FROM range(1000000) t(i)"))


def test_spills_of_killed_processes_are_removed_and_those_in_use_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("EADPR_CACHE", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    stale, elsewhere = (tmp_path / f"spill-{node}-{ended.pid}-x" for node in (platform.node(), "another-machine"))
    for folder in (stale, elsewhere):
        folder.mkdir()
        (folder / "block").write_bytes(b"much")
    with engine.connect():
        (mine,) = set(tmp_path.glob("spill-*")) - {elsewhere}
        assert mine != stale
        with engine.connect():
            assert mine.exists()
    assert list(tmp_path.glob("spill-*")) == [elsewhere]


def test_an_error_of_a_python_function_in_a_query_is_an_error_of_the_user():
    def refuse(text: str) -> str:
        raise ValueError(f"{text} is no pattern")

    def query() -> None:
        with engine.connect() as connection:
            connection.create_function("refuse", refuse, ["VARCHAR"], "VARCHAR")
            connection.execute("SELECT refuse('[')").fetchone()

    with pytest.raises(ValueError, match=r"\[ is no pattern"):
        query()
