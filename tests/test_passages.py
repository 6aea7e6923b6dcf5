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


def test_columns_by_row_and_rows_by_id(path):
    store = PassageStore(path)
    assert len(store) == 5
    assert store.rows([p.id for p in ROWS]).tolist() == [0, 1, 2, 3, 4]
    rows = store.rows(["01", "b/2", "01"])
    assert rows.dtype == np.int64
    assert store.texts(rows) == ["yes", "ein Text\nmit Zeilen", "yes"]
    assert store.titles([1, 0]) == ["", "Äpfel"]
    assert store.sentences([1, 0, 2]) == [[Span(0, 1), Span(1, 4)], None, []]
    assert store.ids(range(5)) == [p.id for p in ROWS]
    assert (store.rows([]).shape, store.texts([])) == ((0,), [])


def test_a_copy_is_made_once_and_kept_by_content(path, monkeypatch):
    PassageStore(path)
    monkeypatch.setattr(passages, "_copy", None)
    assert PassageStore(path).texts([2]) == ["x"]
    assert len(list((cache.root() / "passages").glob("*/columns"))) == 1


@pytest.mark.parametrize("name", ["passages.arrow", "order.npy", "../columns.sha256"])
def test_a_damaged_copy_is_set_aside_and_made_anew(path, name, capsys):
    PassageStore(path)
    (folder,) = (cache.root() / "passages").glob("*/columns")
    damaged = (folder / name).resolve()
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 0x80]))
    store = PassageStore(path)
    assert store.texts(store.rows([row.id for row in ROWS])) == [row.text for row in ROWS]
    assert "was damaged" in capsys.readouterr().err
    assert cache.intact(folder)


@pytest.mark.parametrize("unknown", ["2", "", "010", "zzzz"])
def test_an_unknown_id_is_an_error(path, unknown):
    with pytest.raises(ValueError, match=f"passage id '{unknown}' is not in .*passages.parquet"):
        PassageStore(path).rows(["1", unknown])


@pytest.mark.parametrize("row", [5, -1])
def test_a_row_outside_is_an_error(path, row):
    with pytest.raises(IndexError, match="of 5 passages"):
        PassageStore(path).texts([row])
