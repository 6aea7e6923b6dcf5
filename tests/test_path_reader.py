"""The reader of paths: inputs, losses and decoding against naive loops, its heads, what it learns and writes."""

from __future__ import annotations

import itertools
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr import tables
from eadpr.evaluation.hotpot import golds, scores
from eadpr.machine import Machine
from eadpr.reading_multihop.config import PathReading, PathTraining
from eadpr.reading_multihop.decoding import Decided, PathScores, best_span, decide, supporting
from eadpr.reading_multihop.inputs import (
    NOWHERE,
    PathInput,
    collate,
    path_input,
    sentences_of,
    shares,
    token_spans,
)
from eadpr.reading_multihop.learning import asked, drawn, objective, steps_of, task
from eadpr.reading_multihop.losses import KINDS, kind_loss, path_loss, span_loss, support_loss
from eadpr.reading_multihop.model import PathReader, load, new_reader, save, sentence_means
from eadpr.reading_multihop.paths import Lesson, lessons, passages_of, ranked_paths
from eadpr.reading_multihop.read import read_all
from eadpr.reading_multihop.records import SupportedAnswer
from eadpr.records import Passage, Positive, Span
from eadpr.training import loop
from eadpr.training.checkpoint import Checkpoints
from eadpr.training.encoder import pretrained
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState
from tests.path_reading_toy import write_paths
from tests.small_collection import MACHINE, write_model

HARDWARE = Machine(**MACHINE)

READING = PathReading(question_tokens=8, input_tokens=48, answer_tokens=4)


def double(rows: list) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_path_loss_by_hand():
    """Exponentials 1 2 5 with the gold 2 and 5: 7 of 8; 3 1 and a path that is not there, gold 1 and that: 1 of 4."""
    scores = double([[1, 2, 5], [3, 1, 9]]).log()
    gold = torch.tensor([[False, True, True], [False, True, True]])
    there = torch.tensor([[True, True, True], [True, True, False]])
    assert path_loss(scores, gold, there).item() == pytest.approx((log(8 / 7) + log(4)) / 2)


def test_kind_loss_is_the_cross_entropy():
    assert kind_loss(double([[1, 2, 5]]).log(), torch.tensor([1])).item() == pytest.approx(log(4))


def test_span_loss_sums_the_places_of_an_answer():
    """Starts 0.5 0.5, ends 0.2 0.8, the third token unreadable: 0.5 * 0.2 + 0.5 * 0.8; the second path has none."""
    start, end = double([[1, 1, 7], [1, 1, 1]]).log(), double([[1, 4, 7], [1, 1, 1]]).log()
    readable = torch.tensor([[True, True, False], [True, True, True]])
    assert span_loss(start, end, readable, [[(0, 0), (1, 1)], []]).item() == pytest.approx(log(2))
    assert span_loss(start, end, readable, [[], []]).item() == 0


@given(st.data())
def test_span_loss_and_gradient_equal_a_naive_loop(data):
    paths, tokens = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    draw = np.random.default_rng(data.draw(st.integers(0, 999)))
    readable = draw.random((paths, tokens)) < 0.7
    spans = [
        [(i, j) for i in range(tokens) for j in range(i, tokens) if row[i] and row[j] and draw.random() < 0.3]
        for row in readable
    ]
    values = draw.normal(0, 2, (2, paths, tokens))
    fast, slow = (torch.tensor(values, requires_grad=True) for _ in range(2))
    loss = span_loss(fast[0], fast[1], torch.from_numpy(readable), spans)
    losses = []
    for p in range(paths):
        if spans[p]:
            start, end = ([slow[k, p, i].exp() if readable[p, i] else 0.0 for i in range(tokens)] for k in range(2))
            losses.append(-torch.log(sum(start[i] / sum(start) * (end[j] / sum(end)) for i, j in spans[p])))
    naive = sum(losses) / len(losses) if losses else slow.sum() * 0
    torch.testing.assert_close(loss, naive)
    loss.backward()
    naive.backward()
    torch.testing.assert_close(fast.grad, slow.grad)


def test_support_loss_counts_sentences_that_are_there():
    """Probabilities 0.75 for a supporting, 0.25 for another one; the third is not there."""
    scores = double([[log(3), -log(3), 9.0]])
    there = torch.tensor([[True, True, False]])
    assert support_loss(scores, torch.tensor([[True, False, False]]), there).item() == pytest.approx(log(4 / 3))
    assert support_loss(scores, torch.tensor([[True, False, False]]), ~there & False).item() == 0


@given(st.data())
def test_best_span_equals_a_naive_loop(data):
    count, longest = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 4))
    passages = np.array(data.draw(st.lists(st.sampled_from([NOWHERE, 0, 1]), min_size=count, max_size=count)))
    start, end = (
        np.array(data.draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count)), float) for _ in "se"
    )
    found = best_span(start, end, passages, longest)
    readable = [i for i in range(count) if passages[i] != NOWHERE]
    if not readable:
        assert found is None
        return
    totals = {
        (i, j): start[i] - np.log(np.exp(start[readable]).sum()) + end[j] - np.log(np.exp(end[readable]).sum())
        for i, j in itertools.product(readable, readable)
        if i <= j < i + longest and passages[i] == passages[j]
    }
    assert found[2] == pytest.approx(max(totals.values()))
    assert totals[found[:2]] == pytest.approx(found[2])


def path_of(passages: list[int], sentences: list[int], numbered: list[tuple[int, int]]) -> PathInput:
    size = len(passages)
    offsets = np.array([(i, i + 1) for i in range(size)])
    return PathInput(np.arange(size), np.zeros(size, int), np.array(passages), offsets, np.array(sentences), numbered)


TWO = path_of([NOWHERE, 0, 0, 1], [NOWHERE, 0, 1, 2], [(0, 0), (0, 1), (1, 0)])
FLAT = np.zeros(4)


def scores_of(path: float, kinds: list[float]) -> PathScores:
    return PathScores(log(path), np.log(kinds), np.log([1, 6, 1, 1]), np.log([1, 1, 6, 1]), np.zeros(3))


def test_the_most_probable_answer_of_all_paths():
    """Spans have 0.75 * 0.75. The first path: 0.4 * 0.9 = 0.36 for yes; the second: 0.6 * 0.8 * 0.5625 = 0.27."""
    first, second = scores_of(0.4, [0.05, 0.9, 0.05]), scores_of(0.6, [0.8, 0.1, 0.1])
    assert decide([first, second], [TWO, TWO], 4) == Decided(0, "yes", None, pytest.approx(log(0.36)))
    sure = log(0.6 / 0.64 * 0.8 * 0.5625)
    likelier = decide([first._replace(path=log(0.04)), second], [TWO, TWO], 4)
    assert likelier == Decided(1, "span", (1, 2), pytest.approx(sure))
    assert decide([second], [TWO], 1).kind == "yes"  # of one token the best span has 0.75 * 0.125 * 0.8
    with pytest.raises(ValueError, match="a question without a path"):
        decide([], [], 4)


def test_a_path_without_text_can_only_be_answered_yes_or_no():
    empty = path_of([NOWHERE, NOWHERE], [NOWHERE, NOWHERE], [])
    given = PathScores(0.0, np.array([9.0, 1.0, 2.0]), np.zeros(2), np.zeros(2), np.zeros(0))
    assert decide([given], [empty], 4).kind == "no"


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 1.0, 3.0], [(0, 0), (0, 1), (1, 0)]),
        ([-2.0, -1.0, -3.0], [(0, 1), (1, 0)]),  # each passage's likeliest
        ([0.0, 0.0, 0.0], [(0, 0), (1, 0)]),
    ],
)
def test_supporting_sentences(scores, expected):
    assert supporting(np.array(scores), TWO) == expected


def test_a_sentence_without_tokens_never_supports():
    cut = path_of([0, 0], [0, 0], [(0, 0), (0, 1), (1, 0)])
    assert supporting(np.array([-1.0, 9.0, 9.0]), cut) == [(0, 0)]


@given(st.lists(st.integers(0, 9), max_size=4), st.integers(0, 30))
def test_shares_fill_the_room_evenly(sizes, room):
    found = shares(sizes, room)
    assert sum(found) == min(sum(sizes), room)
    assert all(share <= size for share, size in zip(found, sizes, strict=True))
    cut = [share for share, size in zip(found, sizes, strict=True) if share < size]
    assert not cut or max(found) <= min(cut) + 1  # what was cut is as long as anything that stays, but for one token


def test_sentences_of_tokens():
    sentences = [Span(0, 4), Span(4, 4), Span(5, 9)]
    assert sentences_of([(0, 2), (2, 4), (4, 5), (5, 7), (8, 9), (9, 10)], sentences) == [0, 0, NOWHERE, 2, 2, NOWHERE]
    assert sentences_of([(0, 1)], []) == [NOWHERE]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "toy", passage_tokens=24) / "passage_encoder"


ADA = Passage("a", "ada", "ada was born . where was w1 w2 .", None)
BOB = Passage("b", "", "w3 paris . w4", None)
CUT = [[Span(0, 14), Span(14, 32)], [Span(0, 10), Span(10, 13)]]


def test_an_input_says_where_its_tokens_stand(encoder):
    _, tokenizer = pretrained(str(encoder))
    one = path_input(tokenizer, "where was ada", [ADA, BOB], CUT, READING)
    words = tokenizer.convert_ids_to_tokens(one.ids_T.tolist())
    assert words[:7] == ["[CLS]", "where", "was", "ada", "[SEP]", "ada", "ada"]
    assert words[-6:] == ["[SEP]", "w3", "paris", ".", "w4", "[SEP]"]
    assert one.second_T.tolist() == [0] * 5 + [1] * (len(words) - 5)
    for place, passage in enumerate([ADA, BOB]):
        inside = np.flatnonzero(one.passage_T == place)
        assert [passage.text[s:e] for s, e in one.offsets_T2[inside]] == [words[i] for i in inside]
    assert one.sentences == [(0, 0), (0, 1), (1, 0), (1, 1)]
    held = {words[i]: int(one.sentence_T[i]) for i in np.flatnonzero(one.passage_T != NOWHERE) if words[i] != "."}
    assert held == {"ada": 0, "was": 1, "born": 0, "where": 1, "w1": 1, "w2": 1, "w3": 2, "paris": 2, "w4": 3}


def test_long_inputs_are_cut_and_answers_beyond_are_not_found(encoder):
    _, tokenizer = pretrained(str(encoder))
    short = PathReading(question_tokens=4, input_tokens=16, answer_tokens=4)
    one = path_input(tokenizer, "where was ada born w1 w2", [ADA, BOB], CUT, short)
    words = tokenizer.convert_ids_to_tokens(one.ids_T.tolist())
    assert " ".join(words) == "[CLS] where was ada born [SEP] ada ada was born [SEP] w3 paris . w4 [SEP]"
    answers = [[Span(0, 7), Span(8, 12), Span(8, 14), Span(26, 31)], [Span(3, 8)]]
    found = [(words[i], words[j]) for i, j in token_spans(one, answers)]
    assert found == [("ada", "was"), ("born", "born"), ("paris", "paris")]


def test_sentence_means_by_hand():
    states = torch.tensor([[[1.0], [3.0], [5.0]]])
    assert sentence_means(states, torch.tensor([[0, 0, 2]]), 4).flatten().tolist() == [2, 0, 5, 0]


def test_a_path_s_scores_do_not_depend_on_its_batch_and_survive_saving(encoder, tmp_path):
    reader = new_reader(str(encoder), READING, seed=1).eval()
    inputs = [
        path_input(reader.tokenizer, "where was ada", passages, [CUT[0]] * len(passages), READING)
        for passages in ([ADA], [ADA, BOB])
    ]
    (tmp_path / "reader").mkdir()
    save(tmp_path / "reader", reader)
    again = load(tmp_path / "reader")
    with torch.inference_mode():
        both = again(collate(inputs, reader.tokenizer.pad_token_id))
        for i, one in enumerate(inputs):
            alone = reader(collate([one], reader.tokenizer.pad_token_id))
            for name, together in both._asdict().items():
                own = getattr(alone, name)
                part = together[i : i + 1, : own.shape[1]] if own.ndim == 2 else together[i : i + 1]
                torch.testing.assert_close(part, own, msg=name)
    assert both.kind_NK.shape == (2, len(KINDS))


def test_an_input_longer_than_the_encoder_s_positions_is_refused(encoder):
    with pytest.raises(ValueError, match=r"input_tokens must not exceed the 64 positions of .*, found 65"):
        PathReader(*pretrained(str(encoder)), PathReading(question_tokens=8, input_tokens=65, answer_tokens=4))
    with pytest.raises(ValueError, match="leaves no room"):
        PathReading(question_tokens=20, input_tokens=16, answer_tokens=4)


def test_a_folder_that_is_no_reader_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"reader\.json does not exist"):
        load(tmp_path)


TRAINING = PathTraining(
    seed=5,
    epochs=1,
    steps=60,
    batch_size=4,
    negatives=2,
    support=1.0,
    learning_rate=5e-3,
    warmup_steps=2,
    adam_beta1=0.9,
    adam_beta2=0.999,
    adam_eps=1e-8,
    weight_decay=0.0,
    max_grad_norm=1.0,
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_paths(tmp_path_factory.mktemp("paths"))


IDS = [f"q{i}" for i in range(20)]


def taught(toy) -> tuple[list[Lesson], dict[str, Passage]]:
    records, positives, paths = toy
    found = dict(ranked_paths(paths, IDS, 5))
    passages = passages_of(records / "passages.parquet", [i for own in found.values() for path in own for i in path])
    return list(lessons(records, positives, found, passages, IDS)), passages


def test_only_the_first_paths_of_the_questions_asked_for_are_read(toy):
    found = dict(ranked_paths(toy[2], ["q3", "none", "q1"], 2))
    assert found == {i: [[f"a{i[1]}", f"b{i[1]}"], [f"b{i[1]}", f"a{i[1]}"]] for i in ("q1", "q3")}


def test_a_lesson_has_its_answer_s_places_and_its_support(toy):
    found, passages = taught(toy)
    one, closed = found[3], found[4]
    assert one.gold == ["a3", "b3"]
    assert one.others == [["c1", "b5"], ["c2", "b7"], ["c3", "b9"]]  # not the supporting passages in another order
    text = passages["b3"].text
    assert [[passages[i].text[s:e] for s, e in own] for i, own in zip(one.gold, one.places, strict=True)] == [
        [], [text.split("born ")[1].split()[0]],
    ]  # fmt: skip
    assert one.support == {(0, 0), (1, 1)}
    assert (KINDS[closed.kind], closed.either, closed.places) == ("no", True, [[], []])


def test_every_sentence_that_holds_evidence_supports(toy, tmp_path):
    records, positives, paths = toy
    rows = [
        row._replace(gold=[Span(0, 30)]) if row.passage_id == "a3" else row for row in tables.rows(positives, Positive)
    ]
    tables.write(tmp_path / "positives.parquet", Positive, rows)
    found, _ = taught((records, tmp_path / "positives.parquet", paths))
    assert found[3].support == {(0, 0), (0, 1), (1, 1)}


def test_a_step_reads_as_many_other_paths_as_asked(toy, encoder):
    found, passages = taught(toy)
    right = task(new_reader(str(encoder), READING, seed=1), found, passages, TRAINING, HARDWARE).lesson(0)
    assert right.owner_N.bincount().tolist() == [1 + TRAINING.negatives] * TRAINING.batch_size


def test_a_batch_has_the_gold_path_first_and_tells_sentences_by_its_order(toy, encoder):
    reader = new_reader(str(encoder), READING, seed=1)
    found, passages = taught(toy)
    orders = set()
    for seed in range(6):
        right = asked(reader, [found[3], found[4]], passages, np.random.default_rng(seed), 2)
        assert right.owner_N.tolist() == [0, 0, 0, 1, 1, 1]
        assert right.kinds_G.tolist() == [0, 2]
        words = [reader.tokenizer.convert_ids_to_tokens(row) for row in right.batch.ids_NT.tolist()]
        ((first, last),) = right.spans[0]
        assert " ".join(words[0][first : last + 1]) == passages["b3"].text.split("born ")[1].split()[0]
        assert right.spans[1] == []
        firsts = words[3].index("capital", 6) < words[3].index("w7")
        orders.add(firsts)
        # a4 has two sentences, of which the first supports; b4 two, of which the second does.
        assert right.support_GS[1].tolist() == ([True, False, False, True] if firsts else [False, True, True, False])
    assert orders == {True, False}


def test_the_objective_is_the_sum_over_questions_alone(toy, encoder):
    """Path, kind and span losses of a batch are the means of those of its questions."""
    reader = new_reader(str(encoder), READING, seed=1).eval()
    found, passages = taught(toy)
    batches = [found[:3], *([one] for one in found[:3])]
    losses = []
    for own in batches:
        right = asked(reader, own, passages, np.random.default_rng(0), 9)
        losses.append(objective(reader(right.batch), right, 0.5))
    whole, *parts = losses
    for name in ("path", "kind", "span"):
        mean = torch.stack([getattr(part, name) for part in parts]).mean()
        torch.testing.assert_close(getattr(whole, name), mean, msg=name)
    torch.testing.assert_close(whole.loss, whole.path + whole.kind + whole.span + 0.5 * whole.support)


def learnt(toy, encoder, folder: Path, **changes):
    found, passages = taught(toy)
    reader = new_reader(str(encoder), READING, seed=1)
    settings = TRAINING.model_copy(update=changes)
    state = TrainingState(Encoders(reader, reader), settings)
    loop.run(state, task(reader, found, passages, settings, HARDWARE), Checkpoints(folder))
    return reader.eval(), state.series


def test_it_learns_to_answer_and_to_name_the_support(toy, encoder, tmp_path):
    """On its own training questions; the official metrics of what it writes."""
    reader, series = learnt(toy, encoder, tmp_path, steps=150, learning_rate=1e-2, support=5.0)
    assert series["train/loss"][-1][1] < 0.3 * series["train/loss"][0][1]
    records, positives, paths = toy
    made = read_all(reader, records, paths, IDS, tmp_path, depth=5, hardware=HARDWARE)
    rows = [row for shard in made for row in tables.rows(shard, SupportedAnswer)]
    assert [row.question_id for row in rows] == IDS
    answers, support = ({row.question_id: row[i] for row in rows} for i in (1, 2))
    found = scores(golds(records, positives, IDS), answers, support)
    for metric in ("em", "sp_f1"):
        assert sum(found[question_id][metric] for question_id in IDS) > 0.7 * len(IDS), metric


def test_lessons_are_all_taught_once_in_an_epoch():
    for epoch in range(3):
        steps = [drawn(10, epoch * 5 + step, size=2, seed=1) for step in range(5)]
        assert sorted(i for own in steps for i in own) == list(range(10))
    assert len({tuple(drawn(10, step * 5, size=2, seed=1)) for step in range(5)}) > 1
    assert sorted(drawn(3, 7, size=8, seed=1)) == [0, 1, 2]


@pytest.mark.parametrize(("given", "lessons", "steps"), [(None, 10, 8), (None, 3, 4), (7, 10, 7), (0, 10, 0)])
def test_steps_are_given_or_those_of_four_epochs(given, lessons, steps):
    """Of 2 batches of 4 each; 3 lessons are a batch."""
    settings = TRAINING.model_copy(update={"steps": given, "epochs": 4})
    assert steps_of(settings, lessons) == steps


def test_unknown_passages_are_named(toy):
    with pytest.raises(ValueError, match="passage id 'zz' is not in"):
        passages_of(toy[0] / "passages.parquet", ["a1", "zz"])
