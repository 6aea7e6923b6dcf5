"""Random access to passages: equal to the list of rows it was written from, in memory-mapped and cached form."""

import numpy as np
import pytest

from eadpr.runtime import cache
from eadpr.storage import passages, tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Span

ROWS = [
    Passage("b/2", "Äpfel", "ein Text\nmit Zeilen", None), Passage("1", "", "\u2028 東京", [Span(0, 1), Span(1, 4)]),
    Passage("10", "t", "x", []), Passage("é", "t", "no", None), Passage("01", "t", "yes", None),
]  # fmt: skip


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROW_GROUP", 2)
    tables.write(tmp_path / "passages.parquet", Passage, ROWS)
    return tmp_path / "passages.parquet"


@pytest.mark.parametrize("large", [0, 2**40])
def test_columns_by_row_and_rows_by_id(path, monkeypatch, large):
    monkeypatch.setattr(passages, "LARGE", large)
    store = PassageStore(path)
    assert len(store) == 5
    assert store.rows([p.id for p in ROWS]).tolist() == [0, 1, 2, 3, 4]
    rows = store.rows(["01", "b/2", "01"])
    assert rows.dtype == np.int64
    assert store.texts(rows) == ["yes", "ein Text\nmit Zeilen", "yes"]
    assert store.titles([1, 0]) == ["", "Äpfel"]
    assert store.sentences([1, 0, 2]) == [[Span(0, 1), Span(1, 4)], None, []]
    assert store.ids(range(5)) == [p.id for p in ROWS]
    assert store.rows([]).shape == (0,)
    assert store.texts([]) == []


def test_a_large_copy_is_made_once_and_kept_by_content(path, monkeypatch):
    monkeypatch.setattr(passages, "LARGE", 0)
    PassageStore(path)
    monkeypatch.setattr(passages, "_copy", None)
    assert PassageStore(path).texts([2]) == ["x"]
    assert len(list((cache.root() / "passages").glob("*/columns"))) == 1


def test_a_small_copy_leaves_nothing_behind(path, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    store = PassageStore(path)
    assert (list((tmp_path / "temporary").iterdir()), store.texts([4])) == ([], ["yes"])


def test_ids_that_share_a_hash_are_told_apart(path, monkeypatch):
    monkeypatch.setattr(passages, "hash_ids", lambda ids: np.zeros(len(ids), np.uint64))
    store = PassageStore(path)
    assert store.rows([p.id for p in reversed(ROWS)]).tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(ValueError, match="'2' is not in"):
        store.rows(["2"])


@pytest.mark.parametrize("unknown", ["2", "", "010", "zzzz"])
def test_an_unknown_id_is_an_error(path, unknown):
    with pytest.raises(ValueError, match=f"passage id '{unknown}' is not in .*passages.parquet"):
        PassageStore(path).rows(["1", unknown])


@pytest.mark.parametrize("row", [5, -1])
def test_a_row_outside_is_an_error(path, row):
    with pytest.raises(IndexError, match="of 5 passages"):
        PassageStore(path).texts([row])


def test_an_empty_file_has_no_passages_and_a_missing_one_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="stage prepare"):
        PassageStore(tmp_path / "passages.parquet")
    tables.write(tmp_path / "passages.parquet", Passage, [])
    store = PassageStore(tmp_path / "passages.parquet")
    assert len(store) == 0
    with pytest.raises(ValueError, match="is not in"):
        store.rows(["1"])
