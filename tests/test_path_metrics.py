"""Metrics of paths: by hand, against naive loops over names, and what of a table is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.storage.records import Question, RankedPath
from eadpr.two_hops.evaluate import path_values

pytestmark = pytest.mark.two_hops


def question(question_id: str, hops: str | None, kind: str | None = "bridge") -> Question:
    own = None if hops is None else hops.split()
    return Question(question_id, "who?", ["x"], "string", None, None, kind, own)


def paths(**found: str) -> list[RankedPath]:
    """`q="a b, a c"`: two paths of question q."""
    return [
        RankedPath(question_id, rank, pair.split(), [1.0, 1.0], 2.0)
        for question_id, text in found.items()
        for rank, pair in enumerate(text.split(", "), start=1)
    ]


def test_a_question_without_paths_counts_as_wrong_and_one_without_hops_not_at_all():
    asked = [question("none", None), question("q", "a b"), question("left", "a b")]
    for values in path_values(paths(none="a b", q="a b"), asked, [2]).values():
        assert (values.rows.tolist(), values.values.tolist()) == ([1, 2], [1.0, 0.0])


PASSAGES = "abcde"
Pairs = st.lists(st.permutations(PASSAGES).map(lambda p: tuple(p[:2])), max_size=6, unique=True)


@given(st.lists(st.tuples(st.sets(st.sampled_from(PASSAGES), min_size=1, max_size=3), Pairs), min_size=1, max_size=5))
def test_against_naive_loops(found):
    asked = [question(f"q{i}", " ".join(sorted(hops))) for i, (hops, _) in enumerate(found)]
    rows = [
        RankedPath(f"q{i}", rank, list(pair), [0.0, 0.0], 0.0)
        for i, (_, pairs) in enumerate(found)
        for rank, pair in enumerate(pairs, start=1)
    ]
    values = path_values(rows, asked, [2, 6, 10])
    for k in (2, 6, 10):
        for i, (hops, pairs) in enumerate(found):
            best = pairs[: k // 2]
            passages = {passage for pair in best for passage in pair}
            assert values[f"pr{k}"].values[i] == bool(passages & hops)
            assert values[f"all{k}"].values[i] == (hops <= passages)
            assert values[f"path_recall{k}"].values[i] == any(set(pair) == hops for pair in best)
            assert values[f"hop1_recall{k}"].values[i] == any(pair[0] in hops for pair in best)


@pytest.mark.parametrize(("rows", "all_at", "message"), [
    ([], [2, 5], "evaluate.all_at: 5 is odd"),
    (paths(other="a b"), [2], "'other' is in none of sets.evaluate"),
    (paths(q="a b")[:1] * 2, [2], "'q' stands in two places"),
    ([*paths(q="a b"), *paths(r="a b"), *paths(q="a b")], [2], "'q' stands in two places"),
    (paths(q="a b, b a")[1:], [2], "'q' stands in two places"),
])  # fmt: skip
def test_bad_paths_are_refused(rows, all_at, message):
    with pytest.raises(ValueError, match=message):
        path_values(rows, [question("q", "a b"), question("r", "a b")], all_at)
    with pytest.raises(ValueError, match=r"no question of sets\.evaluate has hops"):
        path_values([], [question("q", None)], [2])
