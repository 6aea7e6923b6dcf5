"""Which questions are read, and the given positives as a ranking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.readers.selection import sample_questions, write_gold
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Positive, Ranked
from tests.reading_toy import READ
from tests.toy_records import question, write_records

pytestmark = pytest.mark.readers

SETS = Sets(train=["a/train"], evaluate=["a/dev", "b/dev"], annotator=[])
IDS = st.lists(st.text(min_size=1), unique=True)


def of(questions: int | None, seed: int = 0):
    return READ.model_copy(update={"questions": questions, "seed": seed})


@given(IDS, IDS, st.integers(1, 9), st.integers(0, 3))
def test_fewer_questions_are_among_more_and_stay_in_their_order(one, two, most, seed):
    members = {"a/dev": one, "b/dev": two}
    assert sample_questions(members, of(None)) == members
    found, more = sample_questions(members, of(most, seed)), sample_questions(members, of(most + 1, seed))
    for name, ids in members.items():
        assert len(found[name]) == min(most, len(ids))
        assert set(found[name]) <= set(more[name])
        assert found[name] == [i for i in ids if i in found[name]]
    assert sample_questions({"a/dev": one[::-1]}, of(most, seed))["a/dev"] == found["a/dev"][::-1]


def test_another_seed_draws_others():
    members = {"a/dev": [f"q{i}" for i in range(20)]}
    assert len({tuple(sample_questions(members, of(5, seed))["a/dev"]) for seed in range(4)}) == 4


def records(folder):
    sets = {"a/train": ["q1"], "a/dev": ["q2", "q3", "q4"], "b/dev": ["q5", "q3"]}
    return write_records(folder, questions=[question(f"q{i}", ["x"]) for i in range(1, 6)], sets=sets)


def write_positives(folder, *rows):
    tables.write(folder / "positives.parquet", Positive, [Positive(*row, None) for row in rows])
    return folder


def test_the_ranking_holds_the_given_positives_of_evaluated_questions(tmp_path):
    """q1 is trained on, BM25 found q4's, q5 has none."""
    rows = [("q1", "p1"), ("q3", "p7"), ("q3", "p2"), ("q2", "p3")]
    positives = write_positives(tmp_path, *((*row, "given") for row in rows), ("q4", "p4", "bm25"))
    assert write_gold(records(tmp_path / "records"), positives, tmp_path / "gold", sets=SETS) == 2
    expected = [Ranked("q2", "p3", 1, 1.0), Ranked("q3", "p7", 1, 1.0), Ranked("q3", "p2", 2, 0.5)]
    assert list(tables.rows(tmp_path / "gold" / "evaluate.parquet", Ranked)) == expected


def test_where_no_positive_is_given_there_is_no_ranking(tmp_path):
    positives = write_positives(tmp_path, ("q1", "p1", "given"), ("q4", "p4", "bm25"))
    with pytest.raises(ValueError, match="gives none of the questions of a/dev, b/dev a positive; take gold out of"):
        write_gold(records(tmp_path / "records"), positives, tmp_path / "gold", sets=SETS)
    assert not (tmp_path / "gold").exists()
