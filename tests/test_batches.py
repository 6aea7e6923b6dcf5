"""Masks and batches; every mask has a case that fails without it."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.storage.records import Distractor, Example, Passage
from eadpr.text.answers import has_answer
from eadpr.training.batches import Batcher, ColumnBlocks, count_masked, deduplicate, draw, epochs
from eadpr.training.losses import make_masks
from tests.small_collection import question
from tests.training_toy import SETTINGS, batcher_of, column_inputs, with_placebos, write_tables

# Columns p1 p2 | h1 h2 | d1 d2.
NOTHING = np.zeros((2, 6), dtype=bool)


def test_columns_belong_to_the_questions_of_the_layout_and_equal_keys_share_a_passage():
    columns = ColumnBlocks([7, 8], [8, None, 5, 9], [20, None], [21, 22])
    keys, columns_P = deduplicate(columns)
    assert keys == [7, 8, 5, 9, 20, 21, 22]
    assert [keys[column] for column in columns_P] == [7, 8, 8, 7, 5, 9, 20, 8, 21, 22]


def test_missing_columns_are_left_out_but_not_counted_as_masked():
    columns = ColumnBlocks([10, 20], [30, None], [50, None], [])
    masks = make_masks(*map(torch.tensor, (columns.present_P, ~NOTHING, [[True, False]], [])))
    assert count_masked(masks, columns.present_P) == 4, "of p1 p2 h1 d1, those of the other question"
    masks = make_masks(*map(torch.tensor, (columns.present_P, NOTHING, [[True, False]], [])))
    assert masks.negatives_QN.tolist() == [[False, True, True, False], [True, False, True, False]]
    assert masks.distractors_QQ.tolist() == [[True, False], [True, False]]
    assert (masks.contrast_CQ.tolist(), masks.placebos_Q.tolist()) == ([[True, False]], [])


def test_an_epoch_sees_each_question_once_in_whole_batches_and_the_next_in_another_order():
    schedule = epochs(once(12), size=4, seed=5)
    assert [schedule(number)[0] for number in range(6)] == [0, 0, 0, 1, 1, 1]
    orders = [[i for b in range(3) for i, _ in schedule(3 * epoch + b)[1]] for epoch in range(2)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(12))
    assert orders[0] != orders[1]
    assert orders[0] == np.random.default_rng([5, 0]).permutation(12).tolist()
    assert epochs(once(12), size=4, seed=6)(0) != schedule(0)
    assert len({i for b in range(2) for i, _ in epochs(once(11), size=4, seed=5)(b)[1]}) == 8
    assert sorted(epochs(once(3), size=4, seed=5)(9)[1]) == [(0, 0), (1, 0), (2, 0)]


def once(count: int) -> np.ndarray:
    return np.ones(count, np.int64)


def epoch_of(times: np.ndarray, *, size: int, number: int = 0) -> list[list[tuple[int, int]]]:
    batches = int(times.sum()) // min(size, len(times))
    return [epochs(times, size=size, seed=5)(number * batches + b)[1] for b in range(batches)]


def test_an_epoch_asks_each_question_as_often_as_it_should():
    times = np.array([1] * 30 + [4] * 8 + [2])
    pairs = [pair for batch in epoch_of(times, size=8) for pair in batch]
    assert sorted(pairs) == [(i, copy) for i, most in enumerate(times) for copy in range(most)]
    assert [epochs(times, size=8, seed=5)(b)[0] for b in (6, 7, 8)] == [0, 0, 1]
    assert epoch_of(times, size=8) != epoch_of(times, size=8, number=1)


@given(st.integers(1, 30), st.lists(st.sampled_from([1, 2, 4, 7]), max_size=30), st.integers(1, 12))
def test_no_question_meets_itself_where_as_many_as_a_batch_are_asked_as_often(most, counts, size):
    """Between two copies of a question each that is asked as often or more often stands at least once."""
    times = np.array([most] * size + [t for t in counts if t <= most])
    for batch in epoch_of(times, size=size):
        questions = [i for i, _ in batch if times[i] == most]
        assert len(set(questions)) == len(questions)


def test_negatives_are_drawn_without_repeats_and_anew_each_epoch():
    rows = np.arange(100, 110)
    draws = [tuple(draw(rows, 3, seed=1, epoch=epoch, example=7)) for epoch in range(20)]
    assert all(len(set(d)) == 3 and set(d) <= set(rows.tolist()) for d in draws)
    assert len(set(draws)) > 15
    assert draws[4] == tuple(draw(rows, 3, seed=1, epoch=4, example=7))
    assert draws[4] != tuple(draw(rows, 3, seed=1, epoch=4, example=7, copy=1))
    for count in (2, 3):  # no more than are asked for
        assert draw(rows[:count], 3, seed=1, epoch=0, example=7).tolist() == rows[:count].tolist()


@pytest.fixture
def written(toy, tmp_path):
    """A function that writes a collection of its own and gives its folder, with the encoders of the toy."""
    (tmp_path / "base").symlink_to(toy / "base")
    return partial(write_tables, tmp_path)


def decoded(batcher: Batcher, ids) -> str:
    return batcher.inputs._encoder.tokenizer.decode(ids, skip_special_tokens=True)


def test_columns_hold_what_the_layout_says(toy):
    batcher = batcher_of(toy)
    batch = batcher.first([0, 2, 5])
    texts = [decoded(batcher, batch.passages[i]) for i in batch.columns_P]
    assert ["born in" in text for text in texts] == [True] * 3 + [False] * 6
    assert ["letters" in text for text in texts] == [False] * 3 + [True] * 3 + [False] * 3
    assert ["often asked" in text for text in texts] == [True] * 3 + [False] * 3 + [True] * 3
    names = [text.split()[0] for text in texts]
    assert names[:3] == names[3:6] == names[6:]
    assert len(set(names)) == 3


def test_a_question_without_distractor_or_negatives(toy):
    batcher = batcher_of(toy, hard=2)  # one negative each
    last = len(batcher.examples.questions) - 1
    batch = batcher.first([0, last])
    assert batch.columns_P.shape == (2 * (2 + 2),)
    expected = [[False, True, True, False, True, False], [True, False, True, False, True, False]]
    assert batch.masks.negatives_QN.tolist() == expected
    assert batch.masks.distractors_QQ.tolist() == [[True, False], [True, False]]
    assert batch.counts == {"without_distractor": 1, "truncated": 0, "masked": 0}


def test_validation_has_the_first_negatives(toy):
    batcher = batcher_of(toy, hard=2)
    rows = batcher.examples.positives[2:6]
    batcher.examples = batcher.examples._replace(negatives=pa.array([rows] * len(batcher)))
    batch = batcher.first([0, 1])
    first = [tuple(ids.tolist()) for ids in batcher.inputs.ids(rows[:2].tolist())]
    assert column_inputs(batch, slice(2, 6)) == first * 2


def test_answers_are_matched_as_has_answer_does(toy):
    """Cities repeat every 8 names, so that another's positive can hold the answer."""
    batcher = batcher_of(toy)
    examples = batcher.examples
    chosen = list(range(len(examples.questions)))
    batch = batcher.first(chosen)
    texts = batcher.inputs.texts([*examples.positives.tolist(), *(n.as_py()[0] for n in examples.negatives)])
    texts += [text or "" for text in examples.distractors]
    count = len(chosen)
    expected = {
        (q, c)
        for q in chosen
        for c in range(3 * count)
        if c % count != q and texts[c] and has_answer(examples.answers[q], texts[c], examples.kinds[q])
    }
    assert expected
    allowed = torch.cat([batch.masks.negatives_QN, batch.masks.distractors_QQ], dim=1)
    assert batch.counts["masked"] == batcher.first(chosen).counts["masked"] == len(expected)
    assert all(not allowed[q, c] for q, c in expected)
    assert allowed.sum() == count * (3 * count - 1) - len(expected) - count  # own positive, absent last distractor
    assert batcher_of(toy, mask=False).first(chosen).counts["masked"] == 0


def test_false_negatives_are_sought_by_the_kind_of_the_answer(written):
    """q0 seeks a pattern, which b holds; q1 a yes, which no text holds, not even a."""
    folder = written(
        [Passage("a", "Al", "Yes, Al ate.", None), Passage("b", "Be", "Be saw Belm.", None)],
        [question("q0", "where?", [r"B\w+m"], "regex"), question("q1", "where?", ["yes"], "yes-no")],
        [Example("q0", "train", "a", [], [], []), Example("q1", "train", "b", [], [], [])],
    )
    batch = batcher_of(folder, hard=0, distractors=False).first([0, 1])
    assert batch.masks.negatives_QN.tolist() == [[False, False], [True, False]]


def test_other_positives_of_a_question_are_no_negatives_of_it(written):
    """Two examples of q0, one of q1; columns: positives 0 to 2, distractors 3 to 5. No text holds an answer. a is a
    positive of q2 too, but none of its examples."""
    pairs = [("q0", "a", ["b"]), ("q0", "b", ["a"]), ("q1", "c", []), ("q2", "d", ["a"])]
    folder = written(
        [Passage(i, i, f"{i} is a page. It has two sentences.", None) for i in "abcd"],
        [question(question_id, "where?", ["yes"], "yes-no") for question_id in ("q0", "q1", "q2")],
        [Example(q, "train", p, [], [0], other_ids) for q, p, other_ids in pairs],
        [Distractor(q, p, "gold", 0, "cut", "It has two sentences.", []) for q, p, _ in pairs],
    )
    batch = batcher_of(folder, hard=0).first([0, 1, 2])
    assert batch.counts["masked"] == 4
    assert batch.masks.negatives_QN.tolist() == [[False, False, True], [False, False, True], [True, True, False]]
    assert batch.masks.distractors_QQ.tolist() == [[True, False, True], [False, True, True], [True, True, True]]
    apart = batcher_of(folder, hard=0).first([0, 2])
    assert (apart.counts["masked"], apart.masks.negatives_QN.tolist()) == (0, [[False, True], [True, False]])
    left_out = batcher_of(folder, hard=0).first([3, 0])
    assert (left_out.counts["masked"], left_out.masks.negatives_QN.tolist()) == (2, [[False, False], [True, False]])
    assert left_out.masks.distractors_QQ.tolist() == [[True, False], [True, True]]


def test_evidence_beyond_the_cut_makes_a_truncated_pair(written):
    """The distractor of a is the positive as far as it is read, that of b is not."""
    settings = SETTINGS.model_copy(update={"passage_tokens": 12})
    filler = "walks and rooms and letters " * 5
    folder = written(
        [Passage("a", "Alman", filler + "Alman was born in Aron.", None),
         Passage("b", "Bevik", "Bevik was born in Belm. " + filler, None)],
        [question(f"q{i}", "where?", ["Aron"]) for i in "ab"],
        [Example(f"q{i}", "train", i, [], [0], []) for i in "ab"],
        [Distractor(f"q{i}", i, "gold", 0, "cut", filler, []) for i in "ab"],
    )  # fmt: skip
    batcher = batcher_of(folder, settings=settings)
    batch = batcher.first([0, 1])
    assert batch.masks.contrast_CQ.tolist() == [[False, True]]
    assert batch.masks.distractors_QQ.diagonal().all()
    assert (batch.counts["truncated"], batcher.count_all()["truncated"]) == (1, 1)


def test_placebos_are_the_last_columns_and_change_no_other(toy, tmp_path):
    """The last question has no distractor, the first no placebo. None is masked, though all placebos hold answers."""
    folder = with_placebos(toy, tmp_path)
    plain_batcher = batcher_of(toy)
    chosen = range(len(plain_batcher))
    batch, plain = batcher_of(folder, placebos=True, balance="placebo").first(chosen), plain_batcher.first(chosen)
    count = len(chosen)
    texts = [decoded(plain_batcher, batch.passages[c]) for c in batch.columns_P[-count:]]
    assert [text.endswith("is often asked about.") for text in texts] == [False] + [True] * (count - 1)
    assert batch.columns_P[-count] == batch.columns_P[0]
    assert batch.columns_P[:-count].tolist() == plain.columns_P.tolist()
    assert [list(ids) for ids in batch.passages[: len(plain.passages)]] == [list(ids) for ids in plain.passages]
    assert batch.masks.negatives_QN.equal(plain.masks.negatives_QN)
    assert batch.masks.distractors_QQ.equal(plain.masks.distractors_QQ)
    assert batch.masks.placebos_Q.tolist() == [False] + [True] * (count - 1)
    assert batch.masks.contrast_CQ.tolist() == [[False] + [True] * (count - 2) + [False]]
    assert batch.counts == plain.counts | {"without_placebo": 1}
    assert plain.counts["masked"] > 0
    assert plain.masks.placebos_Q.tolist() == []
    assert batcher_of(folder, placebos=True).first(chosen).masks.contrast_CQ.equal(plain.masks.contrast_CQ)


def test_a_balanced_pair_with_a_cut_beyond_the_input_is_truncated(written):
    """Both cuts of a lie there; of b the placebo's alone, so it reads as the positive; c has none; of d both are in."""
    settings = SETTINGS.model_copy(update={"passage_tokens": 12})
    filler = "walks and rooms and letters " * 5
    cut = {"a": filler + "Al ate.", "b": "Be ate. " + filler, "c": filler, "d": "walks. " + filler}
    elsewhere = {"a": filler + "Al was born in Aron.", "b": filler, "d": "rooms. " + filler}
    folder = written(
        [Passage("a", "Al", filler + "Al was born in Aron. Al ate.", None),
         Passage("b", "Be", "Be ate. " + filler + "Be was born in Belm.", None),
         Passage("c", "Cy", filler + "Cy was born in Cast.", None),
         Passage("d", "De", "walks. rooms. " + filler, None)],
        [question(f"q{i}", "?", ["Aron"]) for i in "abcd"], [Example(f"q{i}", "train", i, [], [0], []) for i in "abcd"],
        [Distractor(f"q{i}", i, "gold", 0, "cut", text, []) for i, text in cut.items()],
        [Distractor(f"q{i}", i, "placebo", 0, "cut", text, []) for i, text in elsewhere.items()],
    )  # fmt: skip
    alone = [False, False, False, True]
    contrasts = {"placebo": ([alone], 2, 2), "none": ([alone], 3, 3), "both": ([alone, alone], 5, 3)}
    for balance, (contrast, comparisons, examples) in contrasts.items():
        batcher = batcher_of(folder, hard=0, settings=settings, placebos=True, balance=balance)
        batch = batcher.first([0, 1, 2, 3])
        assert batch.masks.contrast_CQ.tolist() == contrast
        assert (batch.counts["truncated"], batcher.count_all()["truncated"]) == (comparisons, examples)


def test_a_question_asked_several_times_in_an_epoch_meets_other_negatives(toy):
    batcher = batcher_of(toy, distractors=False)
    positive_row, *other_rows = batcher.examples.positives
    times = np.array([5] + [1] * len(other_rows))
    batcher.examples = batcher.examples._replace(negatives=pa.array([other_rows] * len(times)))
    batcher._asked = epochs(times, size=1, seed=5)
    epoch = [batcher.sampled(number) for number in range(times.sum())]
    (positive_ids,) = batcher.inputs.ids([int(positive_row)])
    columns = [column_inputs(batch, slice(2)) for batch in epoch]
    hard = [negative for positive, negative in columns if positive == tuple(positive_ids.tolist())]
    assert len(hard) == 5
    assert len(set(hard)) > 1


def test_every_text_is_shuffled_in_its_own_order_and_no_title(written):
    """Three questions and three passages of the same words."""
    words = "a b c d e f"
    folder = written(
        [Passage(i, "w x y z", words, None) for i in "pqr"],
        [question(f"q{i}", words, []) for i in "pqr"],
        [Example(f"q{i}", "train", i, [], [], []) for i in "pqr"],
    )
    batcher = batcher_of(folder, hard=0, distractors=False, shuffle=True)
    batch = batcher.first([0, 1, 2])
    questions, passages = ([decoded(batcher, row).split() for row in ids] for ids in (batch.questions, batch.passages))
    assert len({tuple(text) for text in questions}) == len({tuple(text) for text in passages}) == 3
    assert all(text[:4] == ["w", "x", "y", "z"] for text in passages)
