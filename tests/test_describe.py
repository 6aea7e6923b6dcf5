"""Tables of a collection, over the collection of `tests.evaluated`."""

import pytest

from eadpr.storage import tables
from eadpr.storage.records import Question
from eadpr.studies import describe
from tests.evaluated import QUESTIONS, cells, write_inputs

pytestmark = pytest.mark.studies
RELATIONS = ["P1", "P2", None, "P1", "P1"]


def test_a_set_of_params_collection_is_counted_with_where_its_positives_come_from(tmp_path, monkeypatch):
    write_inputs(tmp_path / "data" / "atlas")
    (tmp_path / "params.yaml").write_text("collection: atlas\n")
    monkeypatch.chdir(tmp_path)
    text = describe.main(None)
    assert text.startswith("# atlas\n\n5 passages of 7 words on average.")  # 5 + 9 + 7 + 8 + 4 words
    assert cells(text) == [
        ["question set", "questions", "positive given", "by BM25", "none, or not used"],
        ["main/dev", "4", "3", "1", "0"],
        ["more/dev", "2", "1", "1", "0"],
    ]
    assert "Relations" not in text


def test_relations_are_counted_by_set(tmp_path):
    write_inputs(tmp_path)
    rows = [row._replace(relation=relation) for row, relation in zip(QUESTIONS, RELATIONS, strict=True)]
    tables.write(tmp_path / "records" / "questions.parquet", Question, rows)
    assert cells(describe.describe_relations(tmp_path / "records")) == [
        ["relation", "main/dev", "more/dev", "example"],
        ["P1", "2", "2", "Who founded Rome?"],
        ["P2", "1", "0", "when was the moon landing"],
    ]
