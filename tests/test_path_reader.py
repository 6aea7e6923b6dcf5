"""Readers of paths: inputs, losses and decoding by hand and against naive loops, what they learn and answer."""

from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.readers import extractive, kinds, selection, train
from eadpr.readers import scores as decoding
from eadpr.readers.answer import ExtractiveAnswerer
from eadpr.readers.config import Reader
from eadpr.readers.evaluate import read_golds, score_predictions
from eadpr.readers.extractive import ExtractiveReader, compute_logits
from eadpr.readers.inputs import NOWHERE, Sentences, find_sentences, make_input, shares, tokenize
from eadpr.readers.lessons import ExtractiveExamples, extractive_terms, path_examples
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Positive, Question, Span
from eadpr.training import loop
from eadpr.training.forward import Encoders
from eadpr.training.state import Checkpoints, TrainingState
from tests.path_reading_toy import LEARNING, READ, write_all
from tests.training_toy import MACHINE

pytestmark = pytest.mark.readers

SETTINGS = LEARNING.model_copy(update={"dropout": 0.0, "attention_dropout": 0.0, "batch_size": 4, "depth": 5})


def double(rows: list) -> torch.Tensor:
    return torch.tensor(np.array(rows), dtype=torch.float64)


def test_an_answer_that_stands_nowhere_teaches_no_span():
    start = torch.zeros(3, requires_grad=True)
    loss = decoding.span_nll(start, start, torch.ones(3, dtype=torch.bool), torch.tensor([]))
    loss.backward()
    assert (loss.item(), start.grad.tolist()) == (0, [0, 0, 0])


def test_support_loss_counts_sentences_that_are_there():
    """Probabilities 0.75 for a supporting, 0.25 for another one; the third is not there."""
    scores = double([log(3), -log(3), 9.0])
    support, present = torch.tensor([True, False, False]), torch.tensor([True, True, False])
    assert decoding.support_loss(scores, support, present).item() == pytest.approx(log(4 / 3))
    assert decoding.support_loss(scores, support, ~present & False).item() == 0


def test_sentence_means_by_hand():
    means = decoding.sentence_means(torch.tensor([1.0, 3.0, 5.0, 9.0]), torch.tensor([0, 0, 2, NOWHERE]), 4)
    assert means.tolist() == [2, 0, 5, 0]


def scored(path: float, kinds: list[float], span: float) -> decoding.PathScores:
    return decoding.PathScores(log(path), decoding.TokenSpan(1, 2, log(span)), np.log(kinds))


def test_the_most_probable_answer_of_all_paths():
    """The first path: 0.4 * 0.9 = 0.36 for yes; the second: 0.6 * 0.8 * 0.5625 = 0.27 for a span."""
    first, second = scored(0.4, [0.05, 0.9, 0.05], 0.5625), scored(0.6, [0.8, 0.1, 0.1], 0.5625)
    assert decoding.most_probable([first, second]) == decoding.Decided(0, "yes", pytest.approx(log(0.36)))
    likelier = decoding.most_probable([first._replace(path=log(0.04)), second])
    assert likelier == decoding.Decided(1, "span", pytest.approx(log(0.6 / 0.64 * 0.8 * 0.5625)))
    assert decoding.most_probable([scored(0.6, [0.8, 0.1, 0.1], 0.05)]).kind == "yes"
    without_text = decoding.PathScores(0.0, None, np.array([9.0, 1.0, 2.0]))
    assert decoding.most_probable([without_text]).kind == "no"
    alike = decoding.most_probable([scored(0.5, [0.5, 0.5, 0.0001], 1.0)] * 2)
    assert alike == (0, "span", pytest.approx(log(0.25), abs=1e-3))


TWO = Sentences([(0, 0), (0, 1), (1, 0)], np.array([NOWHERE, 0, 1, 2]))


@pytest.mark.parametrize(("scores", "expected"), [
    ([2.0, 1.0, 3.0], [(0, 0), (0, 1), (1, 0)]),
    ([-2.0, -1.0, -3.0], [(0, 1), (1, 0)]),  # each passage's likeliest
    ([0.0, 0.0, 0.0], [(0, 0), (1, 0)]),
])  # fmt: skip
def test_supporting_sentences(scores, expected):
    assert decoding.supporting(np.array(scores), TWO) == expected


@given(st.lists(st.integers(0, 9), max_size=4), st.integers(0, 30))
def test_shares_fill_the_room_evenly(sizes, room):
    parts = shares(sizes, room)
    assert sum(parts) == min(sum(sizes), room)
    assert all(share <= size for share, size in zip(parts, sizes, strict=True))
    cut = [share for share, size in zip(parts, sizes, strict=True) if share < size]
    assert not cut or max(parts) <= min(cut) + 1  # what was cut is as long as anything that stays, but for one token


def test_characters_between_sentences_are_of_none():
    sentences = [Span(0, 4), Span(4, 4), Span(5, 9)]
    numbers = find_sentences(np.array([0, 2, 4, 5, 8, 9]), sentences)
    assert numbers.tolist() == [0, 0, NOWHERE, 2, 2, NOWHERE]
    assert find_sentences(np.array([0]), []).tolist() == [NOWHERE]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("paths"))


@pytest.fixture(scope="module")
def store(toy):
    return PassageStore(toy / "records/passages.parquet")


def new_reader(toy: Path, **changes) -> ExtractiveReader:
    return extractive.start(toy / "base", SETTINGS.model_copy(update=changes)).eval()


def test_an_input_says_where_its_tokens_stand(toy, store):
    """a3 and b3 have two sentences each, c1 none that the source gave."""
    reader = new_reader(toy, tokens=64)
    passages = reader.load_passages(store)
    path = tuple(store.rows(["a3", "b3", "c1"]).tolist())
    (path_input,) = reader.inputs("where was w3", [path], passages)
    words = reader.tokenizer.convert_ids_to_tokens(path_input.ids)
    assert words[:8] == ["[CLS]", "where", "was", "w3", "[SEP]", "w3", "[SEP]", "w2"]
    assert words.count("[SEP]") == 6, "after question and titles, and between passages"
    assert path_input.question_length == 5
    for place, row in enumerate(path):
        inside = np.flatnonzero(path_input.passage_T == place)
        assert " ".join(words[i] for i in inside) == passages.text(row)
        for i in inside.tolist():
            position, (start, end) = path_input.characters(i, i)
            assert (position, passages.text(row)[start:end]) == (place, words[i])
    numbers, sentence_T = passages.sentences_in(path_input, path)
    assert numbers[:4] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for index, (place, number) in enumerate(numbers):
        start, end = passages.sentences(path[place])[number]
        sentence = " ".join(words[i] for i in np.flatnonzero(sentence_T == index))
        assert sentence == passages.text(path[place])[start:end].strip()


def test_long_inputs_are_cut_evenly_and_answers_beyond_are_not_found(toy):
    tokenizer = new_reader(toy).tokenizer
    passages = (("ada", "ada was born . where was w1 w2 ."), ("", "w3 paris . w4"))
    pieces = [tokenize(tokenizer, *both, title_tokens=16) for both in passages]
    encoded = make_input(tokenizer, tokenizer("where was ada born", add_special_tokens=False)["input_ids"], pieces, 18)
    words = tokenizer.convert_ids_to_tokens(encoded.ids)
    assert " ".join(words) == "[CLS] where was ada born [SEP] ada [SEP] ada was born . [SEP] [SEP] w3 paris . w4"
    answers = [
        (0, Span(0, 7)), (0, Span(8, 12)), (0, Span(8, 14)), (0, Span(8, 20)), (0, Span(26, 31)), (1, Span(3, 8)),
    ]  # fmt: skip
    spans = [encoded.span(*answer) for answer in answers]
    texts = [span and (words[span[0]], words[span[1]]) for span in spans]
    assert texts == [("ada", "was"), ("born", "born"), ("born", "."), None, None, ("paris", "paris")]


def test_a_path_s_scores_do_not_depend_on_its_batch_and_survive_saving(toy, store, tmp_path):
    reader = new_reader(toy)
    inputs = reader.inputs("where was w1", [(0,), (0, 1, 2)], reader.load_passages(store))
    (tmp_path / "reader").mkdir()
    kinds.save(tmp_path / "reader", reader)
    again = kinds.load(tmp_path / "reader")
    assert again.settings == reader.settings
    with torch.inference_mode():
        both, _ = compute_logits(again, inputs, MACHINE)
        for i, path_input in enumerate(inputs):
            alone, _ = compute_logits(reader, [path_input], MACHINE)
            for name, logits in alone.row(0)._asdict().items():
                together = getattr(both.row(i), name)
                cut = together[: len(logits)] if logits.ndim else together
                torch.testing.assert_close(cut, logits, msg=name)
    assert both.kinds.shape == (2, len(decoding.KINDS))


def test_an_input_longer_than_the_encoder_s_positions_is_refused(toy):
    with pytest.raises(ValueError, match=r"^path_reader\.tokens must not exceed the 64 positions"):
        new_reader(toy, tokens=65)
    with pytest.raises(ValueError, match=r"tokens .16. must be 4 more"):
        Reader.model_validate(SETTINGS.model_dump() | {"question_tokens": 20, "tokens": 16})


def examples_of(toy: Path, store: PassageStore, positives: Path | None = None, **changes) -> ExtractiveExamples:
    table = selection.ranking_table(toy / "ranking", "train", hops=True)
    questions = selection.read_training_questions(toy / "records", toy / "positives", table, store, depth=5)
    return path_examples(new_reader(toy, **changes), list(questions), store, positives or toy / "positives")


def test_a_lesson_has_its_right_paths_and_its_support(toy, store):
    examples = examples_of(toy, store)
    lesson, closed = examples.lessons[3], examples.lessons[4]
    a3, b3, a4, b4 = store.rows(["a3", "b3", "a4", "b4"]).tolist()
    assert lesson.right == [(a3, b3)]
    wrong = [tuple(store.ids(path)) for path in lesson.wrong]
    assert wrong == [("c1", "b5"), ("c2", "b7"), ("c3", "b9")]  # not the supporting passages in another order
    assert (lesson.support, closed.right) == ({(a3, 0), (b3, 1)}, [(a4, b4), (b4, a4)])
    assert len(examples) == 14


def test_every_sentence_that_holds_evidence_supports(toy, store, tmp_path):
    rows = tables.rows(toy / "positives/positives.parquet", Positive)
    rows = [row._replace(gold=[Span(0, 30)]) if row.passage_id == "a3" else row for row in rows]
    tables.write(tmp_path / "positives.parquet", Positive, rows)
    lesson = examples_of(toy, store, tmp_path).lessons[3]
    a3, b3 = store.rows(["a3", "b3"]).tolist()
    assert lesson.support == {(a3, 0), (a3, 1), (b3, 1)}


def test_questions_without_answer_or_hops_are_left_out(toy, store):
    questions = [
        selection.QuestionPaths(
            Question(str(i), "where", answers, "string", None, None, "bridge", hops), [], frozenset()
        )
        for i, (answers, hops) in enumerate(([[], ["a1", "b1"]], [["x"], None], [["nowhere"], ["a1", "b1"]]))
    ]
    examples = path_examples(new_reader(toy), questions, store, toy / "positives")
    assert [lesson.question.id for lesson in examples.lessons] == ["2"]


def test_an_example_has_the_right_path_first_and_tells_sentences_by_its_order(toy, store):
    examples = examples_of(toy, store)
    words = examples.reader.tokenizer.convert_ids_to_tokens
    example = examples(3, 0)
    assert (len(example.inputs), example.kind) == (3, 0)
    ((first, last),) = example.spans_A2.tolist()
    text = store.texts(store.rows(["b3"]))[0]
    assert " ".join(words(example.inputs[0].ids[first : last + 1])) == text.split("born ")[1].split()[0]
    orders = set()
    for epoch in range(9):
        closed = examples(4, epoch)
        assert (closed.kind, len(closed.spans_A2)) == (decoding.KINDS.index("no"), 0)
        tokens = words(closed.inputs[0].ids)
        a4_first = tokens.index("capital", 6) < tokens.index("w7")
        orders.add(a4_first)
        # a4 has two sentences, of which the first supports; b4 two, of which the second does.
        assert closed.support_S.tolist() == ([True, False, False, True] if a4_first else [False, True, True, False])
    assert orders == {True, False}


def test_the_loss_is_the_sum_of_its_terms(toy, store):
    examples = examples_of(toy, store, support=0.5)
    for i in (3, 4):
        terms = extractive_terms(examples.reader, examples(i, 0), MACHINE)
        total = terms["spans"] + terms["selection"] + terms["kinds"] + 0.5 * terms["support"]
        torch.testing.assert_close(terms["loss"], total)
        right, *_ = (compute_logits(examples.reader, [path_input], MACHINE)[0] for path_input in examples(i, 0).inputs)
        kind = torch.nn.functional.cross_entropy(right.kinds, torch.tensor([examples(i, 0).kind]))
        torch.testing.assert_close(terms["kinds"], kind)


def test_it_learns_to_answer_and_to_name_the_support(toy, store, tmp_path):
    """It answers its own training questions; the official metrics judge it."""
    examples = examples_of(toy, store, steps=150, learning_rate=1e-2, support=5.0)
    reader = examples.reader
    state = TrainingState(Encoders(reader, reader), reader.settings)

    def terms(example):
        return extractive_terms(reader, example, MACHINE)

    loop.run(state, train.task(examples, terms, reader.settings), Checkpoints(tmp_path))
    assert state.series["train/loss"][-1][1] < 0.3 * state.series["train/loss"][0][1]
    answerer = ExtractiveAnswerer(reader.eval(), store, READ.model_copy(update={"top_k": [5]}), MACHINE)
    rows = [row for lesson in examples.lessons for row in answerer(lesson.question, [*lesson.right[:1], *lesson.wrong])]
    ids = [lesson.question.id for lesson in examples.lessons]
    gold = read_golds(toy / "records", toy / "positives/positives.parquet", ids)
    scores = score_predictions(gold, {row.question_id: row for row in rows})
    for metric in ("em", "sp_f1"):
        assert sum(scores[question_id][metric] for question_id in ids) > 0.7 * len(ids), metric
    for row in rows:
        closed = row.answer in ("yes", "no")
        text = None if closed else store.texts(store.rows([row.passage_id]))[0]
        assert row.passage_id is None if closed else text[row.start : row.end] == row.answer
