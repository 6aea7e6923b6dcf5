"""Tables of differences: what is compared, which interval they show, and what has a star."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from eadpr.evaluation.outcomes import together
from eadpr.report.config import Sampling
from eadpr.report.differences import Comparison, compare, difference_table
from tests.evaluated import cells, starred

SETTINGS = Sampling(resamples=10_000, confidence=0.95, seed=0)
FEW = SETTINGS.model_copy(update={"resamples": 100})


def per_question(ids, sums, counts):
    return pd.DataFrame({"sums": np.array(sums, np.float64), "counts": np.array(counts, np.int64)}, index=ids)


def first(n, count=20):
    """A training that is right in the first n questions."""
    return per_question([f"q{i}" for i in range(count)], [1] * n + [0] * (count - n), [1] * count)


def compared(first, second, *, fixed=False):
    (difference,) = compare([(first, second, fixed)], FEW)
    return difference


@pytest.mark.parametrize("right", [0, 9])
def test_of_equal_values_wilson_says_how_sure_they_are(right):
    wilson = binomtest(right, 9).proportion_ci(0.95, method="wilson")
    for trainings in ([first(right, 9)], [first(right, 9)] * 3):
        (mean,) = compare([(trainings, [], False)], FEW)
        assert mean.interval[1:3] == pytest.approx(wilson)
    miss = wilson.high if right == 0 else 1 - wilson.low  # of either arm alone
    difference = compared([first(right, 9)], [first(right, 9)]).interval
    assert difference[:3] == pytest.approx((0, -miss, miss))


EMPTY = per_question([], [], [])


def test_differences_are_over_questions_with_as_many_values_in_every_training():
    """q2 has no value on one side, q3 another number of pairs: q1 (1 of 1 against 0), q4 (2 of 2 against 1) remain."""
    arm = per_question(["q1", "q2", "q3", "q4"], [1, 1, 1, 2], [1, 1, 2, 2])
    baseline = per_question(["q4", "q3", "q1"], [1, 1, 0], [2, 1, 1])
    interval = compared([arm], [baseline]).interval
    assert (interval.estimate, interval.n) == (pytest.approx(2 / 3), 2)
    sums, counts = together([arm, baseline, baseline])
    assert (sums.tolist(), counts.tolist()) == ([[1, 2], [0, 1], [0, 1]], [1, 2])
    assert compared([arm], [EMPTY]) is None


def test_trainings_are_paired_by_position_or_with_the_only_one_that_there_can_be():
    """Paired, three trainings differ by 5 questions each and not at all from each other; with one, by 5, 10 and 0."""
    paired = compared([first(10), first(15), first(5)], [first(5), first(10), first(0)]).interval
    with_one = compared([first(10), first(15), first(5)], [first(5)], fixed=True).interval
    assert paired.estimate == with_one.estimate == 0.25
    assert with_one.low < 0 < paired.low
    for baseline in ([first(5), first(5)], [first(5)]):
        unpaired = compared([first(10), first(15), first(5)], baseline)
        assert (unpaired.interval.estimate, unpaired.p) == (0.25, None)


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
    intro, table = difference_table(rows, ["top1", "top5"], SETTINGS)
    assert starred(table) == ["sure"]
    for words in ("points with 95 % intervals (10,000 resamples)", "p below 0.05", "(6 in all)"):
        assert words in intro
    by_label = {row[0]: row[1:] for row in cells(table)}
    assert by_label["single"] == ["+100.0 [+83.9, +100.0]", "–"]
    assert by_label["lucky"][1].startswith("+33.3 [-")
    assert difference_table([], ["top1"], SETTINGS) == []


def test_holms_correction_is_over_the_differences_that_a_table_has():
    """All of 20 questions hold, six do alone, p = 1/32, and not in one of three rows; a metric without shared questions
    counts for nothing."""
    none, six, all_ = ([first(n)] * 2 for n in (0, 6, 20))
    rows = [Comparison("same", [(none, none), ([EMPTY], [EMPTY])]), Comparison("six", [(six, none), (six, [EMPTY])])]
    rows.append(Comparison("all", [([EMPTY], all_), (all_, none)]))
    intro, table = difference_table(rows, ["top1", "top5"], SETTINGS)
    assert "(3 in all)" in intro
    assert [row[1].split()[0] for row in cells(table)[1:]] == ["+0.0", "+30.0", "–"]
    assert starred(table) == ["all"]
    assert starred(difference_table([rows[1]], ["top1", "top5"], SETTINGS)[1]) == ["six"]
