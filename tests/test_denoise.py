"""Denoising: RocketQA's rule on one question, whole rankings, and what arms that mine them get."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eadpr.readers.denoise import Denoise, PassageScore, denoise
from eadpr.runtime.files import sha256
from eadpr.storage import tables
from eadpr.storage.records import Example, Fold, Positive, Ranked
from eadpr.supervision.examples import ArmExamples, make_examples
from eadpr.supervision.negatives import Negatives, mine_negatives
from tests.toy_records import promoted, question, write_ranking, write_records

pytestmark = pytest.mark.readers

RULE = Denoise(below=0.1, above=None)
BOTH = Denoise(below=0.1, above=0.9)
EXAMPLES = ArmExamples(strategy="none", forms={"cut": 1.0}, positive="random", questions=None, seed=2, placebos=None)
MINE = Negatives(kind="ranked", depth=100, skip=0, keep=30, exclude=["answer"], margin=None, seed=0)
PASSAGES = [(f"p{i}", "", f"Text number {i}.") for i in range(7)]
RANKED = {"q0": ["p0", "p1", "p2", "p3", "p4"], "q1": ["p5", "p1", "p6"], "q2": ["p2", "p3"]}
SCORES = {"q0": {"p0": 0.99, "p1": 0.95, "p2": 0.5, "p3": 0.05, "p4": 0.97}, "q2": {"p2": 0.1, "p3": 0.9}}
POSITIVES = {"q0": "p0", "q1": "p5", "q2": "p6"}


@pytest.fixture
def judged(tmp_path):
    """Denoises one question's ranking; gives what stays, the new positives and the counts of what went."""

    def run(ids: str, scores: dict[str, float], own: set[str], settings: Denoise):
        rows = (Positive("q", passage_id, "given", None) for passage_id in sorted(own))
        tables.write(tmp_path / "positives" / "positives.parquet", Positive, rows)
        ranking = write_ranking(tmp_path / "ranking", train={"q": list(ids)})
        found = write_scores(tmp_path / "scores.parquet", {"q": scores})
        out = tmp_path / "judged"
        denoise(tmp_path / "positives", ranking, found, out, settings=settings)
        kept = [row.passage_id for row in tables.rows(out / "train.parquet", Ranked)]
        counts = json.loads((out / "report.json").read_text())["out"]
        return kept, promoted(out).get("q", []), {reason: n for reason, n in counts.items() if n}

    return run


@pytest.mark.parametrize(("scores", "settings", "kept", "new", "refused"), [
    ({"a": 0.05, "b": 0.125, "c": 0.0}, Denoise(below=0.125, above=None), ["a", "c"], [], {"doubtful": 1}),
    ({"a": 0.05, "b": 0.95, "c": 0.9}, RULE, ["a"], [], {"doubtful": 2}),
    ({"a": 0.91, "b": 0.95, "c": 0.5}, BOTH, [], ["b", "a"], {"positive": 2, "doubtful": 1}),
    ({"a": 0.05}, BOTH, ["a"], [], {"unscored": 2}),
])  # fmt: skip
def test_the_rule(judged, scores, settings, kept, new, refused):
    assert judged("abc", scores, set(), settings) == (kept, new, refused)


def test_a_positive_of_the_question_stays_and_is_not_new(judged):
    assert judged("ab", {"a": 0.99}, {"a", "b"}, BOTH) == (["a", "b"], [], {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1, width=32), min_size=1),
    st.sets(st.sampled_from("abcdef")),
    st.data(),
)
def test_each_passage_is_kept_new_or_refused(judged, scores, own, data):
    below = data.draw(st.floats(0.01, 1))
    above = data.draw(st.none() | st.floats(below, 1, exclude_max=True)) if below < 1 else None
    kept, new, refused = judged("abcdef", scores, own, Denoise(below=below, above=above))
    naive = [i for i in "abcdef" if i in own or (i in scores and scores[i] < below)]
    assert kept == naive
    assert set(new) == {i for i in scores if above is not None and scores[i] > above and i not in own}
    assert sum(refused.values()) == 6 - len(naive)


def write_scores(path, scores=SCORES):
    rows = (PassageScore(q, p, score) for q, own in scores.items() for p, score in own.items())
    tables.write(path, PassageScore, rows)
    return path


@pytest.fixture
def folders(tmp_path):
    """Records, positives and the ranking that is denoised."""
    asked = [question(question_id, ["no such answer"]) for question_id in RANKED]
    records = write_records(tmp_path / "records", passages=PASSAGES, questions=asked)
    given = (Positive(q, p, "given", None) for q, p in POSITIVES.items())
    tables.write(tmp_path / "positives" / "positives.parquet", Positive, given)
    tables.write(tmp_path / "positives" / "folds.parquet", Fold, [Fold(q, "train", 0) for q in RANKED])
    return records, tmp_path / "positives", write_ranking(tmp_path / "bm25", train=RANKED)


def run(folders, tmp_path, settings=BOTH, name="clean"):
    _, positives, ranking = folders
    out = tmp_path / name
    count = denoise(positives, ranking, write_scores(tmp_path / "scores.parquet"), out, settings=settings)
    found: dict[str, list[tuple[str, int]]] = {}
    for row in tables.rows(out / "train.parquet", Ranked):
        found.setdefault(row.question_id, []).append((row.passage_id, row.rank))
    assert count == sum(map(len, found.values()))
    return out, found


def test_a_ranking_keeps_its_ranks_says_what_left_and_asks_for_new_positives_only_with_above(folders, tmp_path):
    """q1 was not scored: but for its positive p5 nothing stays."""
    out, found = run(folders, tmp_path)
    assert found == {"q0": [("p0", 1), ("p3", 4)], "q1": [("p5", 1)]}
    assert promoted(out) == {"q0": ["p4", "p1"]}
    expected = {"of": "bm25", "ranked": 10, "kept": 3, "out": {"unscored": 2, "doubtful": 3, "positive": 2}}
    assert json.loads((out / "report.json").read_text()) == expected
    out, _ = run(folders, tmp_path, RULE)
    assert sorted(path.name for path in out.iterdir()) == ["report.json", "train.parquet"]
    assert promoted(out) == {}


def test_an_arm_mines_what_stays_and_asks_for_new_positives(folders, tmp_path):
    records, positives, _ = folders
    clean, _ = run(folders, tmp_path)
    mined = tmp_path / "negatives"
    assert mine_negatives(records, positives, clean, mined, negatives=MINE) == 1
    assert promoted(mined) == {"q0": ["p4", "p1"]}
    found = {}
    for positive in ("first", "random", "each"):
        settings = EXAMPLES.model_copy(update={"positive": positive})
        make_examples(positives, mined, tmp_path / "unused", tmp_path / positive, examples=settings)
        rows = tables.rows(tmp_path / positive / "examples.parquet", Example)
        found[positive] = [(row.question_id, row.positive, row.negatives) for row in rows]
    others = [("q1", "p5", []), ("q2", "p6", [])]
    assert found["first"] == [("q0", "p0", ["p3"]), *others]
    assert found["each"] == [("q0", p, ["p3"]) for p in ("p0", "p4", "p1")] + others
    assert found["random"][0] in found["each"][:3]
    assert found["random"][1:] == others


def test_validation_asks_for_no_new_positive(folders, tmp_path):
    records, positives, _ = folders
    folds = [Fold(q, "validation" if q == "q0" else "train", 0) for q in RANKED]
    tables.write(positives / "folds.parquet", Fold, folds)
    clean, _ = run(folders, tmp_path)
    mine_negatives(records, positives, clean, tmp_path / "negatives", negatives=MINE)
    settings = EXAMPLES.model_copy(update={"positive": "each"})
    make_examples(positives, tmp_path / "negatives", tmp_path / "unused", tmp_path / "out", examples=settings)
    rows = tables.rows(tmp_path / "out" / "examples.parquet", Example)
    assert [(row.role, row.positive) for row in rows if row.question_id == "q0"] == [("validation", "p0")]


def test_a_new_positive_is_no_negative_under_another_id(folders, tmp_path):
    """p3 has the text of p4, which the reader takes for a positive."""
    records, positives, _ = folders
    passages = [(i, title, "Text number 4." if i == "p3" else text) for i, title, text in PASSAGES]
    write_records(records, passages=passages, questions=[question(q, ["x"]) for q in RANKED])
    clean, _ = run(folders, tmp_path)
    assert mine_negatives(records, positives, clean, tmp_path / "negatives", negatives=MINE) == 0


def test_nothing_added_changes_no_choice(folders, tmp_path):
    """Without new positives the same positives are drawn as from a table of new ones of other questions."""
    records, positives, ranking = folders
    mined, drawn = tmp_path / "negatives", []
    mine_negatives(records, positives, ranking, mined, negatives=MINE)
    for number in range(2):
        out = tmp_path / f"examples-{number}"
        make_examples(positives, mined, tmp_path / "unused", out, examples=EXAMPLES)
        drawn.append(sha256(out / "examples.parquet"))
        tables.write(mined / "positives.parquet", Positive, [Positive("z", "p1", "reader", None)])
    assert drawn[0] == drawn[1]


def test_scores_of_another_ranking_are_named(folders, tmp_path):
    _, positives, ranking = folders
    tables.write(tmp_path / "s.parquet", PassageScore, [])
    with pytest.raises(ValueError, match=r"scores none of the 10 passages that .*train\.parquet ranks; score that"):
        denoise(positives, ranking, tmp_path / "s.parquet", tmp_path / "out", settings=BOTH)
    assert not (tmp_path / "out").exists()
