"""Tables of differences: what is compared, which interval they show, and what has a star."""

import numpy as np
import pandas as pd
import pytest

from eadpr.evaluation.outcomes import Outcomes, together
from eadpr.report import markdown as tabulate
from eadpr.report.config import Sampling
from eadpr.report.differences import Comparison, compare, comparisons, difference_table
from tests.evaluated import cells, starred, write_outcomes

SETTINGS = Sampling(resamples=10_000, confidence=0.95, seed=0)
FEW = SETTINGS.model_copy(update={"resamples": 100})


def per_question(ids, sums, counts):
    return pd.DataFrame({"sums": np.array(sums, np.float64), "counts": np.array(counts, np.int64)}, index=ids)


def first(n, of=20):
    """A training that is right in the first n questions."""
    return per_question([f"q{i}" for i in range(of)], [1] * n + [0] * (of - n), [1] * of)


def compared(first, second, *, fixed=False):
    (found,) = compare([(first, second, fixed)], FEW)
    return found


EMPTY = per_question([], [], [])


def test_differences_are_over_questions_with_as_many_values_in_every_training():
    """q2 has no value on one side, q3 another number of pairs: q1 (1 of 1 against 0), q4 (2 of 2 against 1) remain."""
    one = per_question(["q1", "q2", "q3", "q4"], [1, 1, 1, 2], [1, 1, 2, 2])
    other = per_question(["q4", "q3", "q1"], [1, 1, 0], [2, 1, 1])
    found = compared([one], [other]).interval
    assert (found.estimate, found.n) == (pytest.approx(2 / 3), 2)
    sums, counts = together([one, other, other])
    assert (sums.tolist(), counts.tolist()) == ([[1, 2], [0, 1], [0, 1]], [1, 2])
    assert compared([one], [EMPTY]) is None
    assert tabulate.difference(None) == "–"


def test_trainings_are_paired_by_position_or_with_the_only_one_that_there_can_be():
    """Paired, three trainings differ by 5 questions each and not at all from each other; with one, by 5, 10 and 0."""
    found = compared([first(10), first(15), first(5)], [first(5), first(10), first(0)]).intervals
    assert [one.estimate for one in found.each] == [0.25, 0.25, 0.25]
    against_one = compared([first(10), first(15), first(5)], [first(5)], fixed=True).intervals
    assert [one.estimate for one in against_one.each] == [0.25, 0.5, 0]
    assert against_one.both.estimate == found.both.estimate == 0.25
    assert against_one.both.low < 0 < found.both.low
    for others in ([first(5), first(5)], [first(5)]):
        unpaired = compared([first(10), first(15), first(5)], others)
        assert (unpaired.interval.estimate, unpaired.intervals.both, unpaired.p) == (0.25, None, None)


def test_a_star_needs_the_test_of_questions_and_the_interval_over_trainings_too():
    """lucky: one training of three is right in all of 20 questions, p = 1/2^19, the others in none. few: every training
    in the same five, p = 1/16. single: in all, once."""
    none = [first(0)] * 3
    rows = [
        Comparison("sure", [(none, none), ([first(20)] * 3, none)]),
        Comparison("lucky", [(none, none), ([first(20), first(0), first(0)], none)]),
        Comparison("few", [(none, none), ([first(5)] * 3, none)]),
        Comparison("single", [([first(20)], [first(0)]), (none[:1], [EMPTY])]),
        Comparison("empty", [(none, [EMPTY])] * 2),
    ]
    said, table, _, alone = difference_table(rows, ["a", "b"], SETTINGS)
    assert starred(table) == ["sure"]
    assert "over trainings and questions (two-way bootstrap, 10,000 resamples); * where the" in said
    assert said.endswith("several trainings of both sides, as many of each (single), over questions alone, no stars:")
    assert "(6 in all); without several" in said
    shown = {row[0]: row[1:] for row in cells(table)}
    assert shown["single"] == ["+100.0 [+100.0, +100.0]", "–"]
    assert shown["lucky"][1].startswith("+33.3 [-")
    assert [row[0] for row in cells(alone)] == ["difference", "sure, mean", "lucky, mean", "few, mean"]
    assert cells(alone)[2][2] == "+33.3 [+33.3, +33.3]"


def test_single_trainings_have_no_stars_and_no_second_table():
    said, table = difference_table([Comparison("a − b", [([first(20)], [first(0)])])], ["top-1"], SETTINGS)
    assert said == (
        "Differences in percentage points with 95 % intervals over questions (paired bootstrap, 10,000 resamples). No"
        " stars: without several trainings of both sides, as many of each, nothing is said of other trainings:"
    )
    assert cells(table)[1:] == [["a − b", "+100.0 [+100.0, +100.0]"]]
    assert difference_table([], ["top-1"], SETTINGS) == []


def test_holms_correction_is_over_the_differences_that_a_table_has():
    """All of 20 questions hold, six do alone, p = 1/32, and not in one of three rows; a metric without shared questions
    counts for nothing."""
    none, six, all_ = ([first(n)] * 2 for n in (0, 6, 20))
    rows = [Comparison("same", [(none, none), ([EMPTY], [EMPTY])]), Comparison("six", [(six, none), (six, [EMPTY])])]
    rows.append(Comparison("all", [([EMPTY], all_), (all_, none)]))
    said, table, *_ = difference_table(rows, ["a", "b"], SETTINGS)
    assert said.endswith("with Holm's correction over the table (3 in all):")
    assert [row[1].split()[0] for row in cells(table)[1:]] == ["+0.0", "+30.0", "–"]
    assert starred(table) == ["all"]
    assert starred(difference_table([rows[1]], ["a", "b"], SETTINGS)[1]) == ["six"]


@pytest.mark.parametrize(("arms", "labels"), [
    (("eadpr", "dpr"), ["eadpr − dpr, mean", "eadpr − dpr", "eadpr-2 − dpr-2"]),
    (("eadpr", "bm25"), ["eadpr − bm25, mean", "eadpr − bm25", "eadpr-2 − bm25"]),
    (("bm25", "dpr"), ["bm25 − dpr, mean", "bm25 − dpr", "bm25 − dpr-2"]),
])  # fmt: skip
def test_every_training_has_a_row_of_its_own_over_questions_alone(tmp_path, arms, labels):
    """Right in 4, 3, 2, 1 and 0 of 4 questions."""
    names = {"eadpr": ["eadpr", "eadpr-2"], "dpr": ["dpr", "dpr-2"], "bm25": ["bm25"]}
    for n, name in enumerate(["eadpr", "eadpr-2", "dpr", "dpr-2", "bm25"]):
        write_outcomes(tmp_path / f"{name}.parquet", {"top1": [1] * (4 - n) + [0] * n})
    outcomes = {arm: Outcomes([tmp_path / f"{name}.parquet" for name in of]) for arm, of in names.items()}
    right = {name: 25 * (4 - n) for n, name in enumerate(["eadpr", "eadpr-2", "dpr", "dpr-2", "bm25"])}
    *_, alone = difference_table(comparisons(outcomes, [arms], "main/dev", ["top1"]), ["top-1"], FEW)
    found = {row[0]: float(row[1].split()[0]) for row in cells(alone)[1:]}
    assert list(found) == labels
    assert [found[label] for label in labels[1:]] == [
        right[one] - right[other] for one, other in (label.split(" − ") for label in labels[1:])
    ]
