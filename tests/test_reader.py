"""The extractive reader end to end on a small collection: inputs, what it learns, the same bytes, also when killed."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, DistilBertConfig, RobertaConfig

from eadpr.readers import extractive, kinds, selection
from eadpr.readers import train as training
from eadpr.readers.answer import ExtractiveAnswerer, answer_questions
from eadpr.readers.evaluate import evaluate_reading
from eadpr.readers.inputs import NOWHERE, Input, Tokens, make_input, tokenize
from eadpr.readers.lessons import ExtractiveExamples, extractive_terms, passage_examples
from eadpr.readers.predictions import Prediction
from eadpr.readers.scores import PathScores, TokenSpan, selected_span, selection_nll, span_nll
from eadpr.readers.selection import QuestionPaths
from eadpr.runtime import machine
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Span
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState
from tests import reading_toy
from tests.conftest import threads
from tests.evaluated import summary
from tests.killed import assert_goes_on, assert_shards_go_on
from tests.reading_toy import READ, READER, SETS, write_reading
from tests.toy_records import question, write_records
from tests.training_toy import CITIES, MACHINE, NAMES, series

pytestmark = [pytest.mark.readers, pytest.mark.usefixtures("one_thread")]

EVALUATED = range(3, len(NAMES), 4)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_reading(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def trained(toy, tmp_path_factory):
    """A reader after 120 steps, and its log."""
    out = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EADPR_CACHE", str(out / "cache"))
        assert train(toy, out) == 120
    return out


train = partial(reading_toy.train, settings=READER)


def untrained(toy: Path, **changes) -> extractive.ExtractiveReader:
    return extractive.start(toy / "base", READER.model_copy(update=changes)).eval()


def given_input(reader: extractive.ExtractiveReader, question: str, title: str, text: str) -> Input:
    """The input of a passage in no store."""
    passage = tokenize(reader.tokenizer, title, text, title_tokens=12)
    return make_input(reader.tokenizer, reader.question_ids(question), [passage], reader.settings.tokens)


def examples(toy: Path, reader: extractive.ExtractiveReader) -> ExtractiveExamples:
    store = PassageStore(toy / "records/passages.parquet")
    questions = selection.read_training_questions(
        toy / "records", toy / "positives", toy / "ranking/train.parquet", store, depth=4
    )
    return passage_examples(reader, list(questions), store, toy / "positives")


@pytest.mark.parametrize("count", [1, 2])
def test_a_step_takes_the_mean_of_its_questions(toy, count):
    """Gradients and logged losses, on one thread and on two."""
    reader = untrained(toy, batch_size=5)
    lesson_terms = partial(extractive_terms, reader, hardware=MACHINE)
    task = training.task(examples(toy, reader), lesson_terms, reader.settings)
    lesson = task.lesson(0)
    with threads(count):
        logged = task.backward(TrainingState(Encoders(reader, reader), reader.settings), lesson)
    gradients = {name: p.grad.clone() for name, p in reader.named_parameters() if p.grad is not None}
    reader.zero_grad()
    naive = [lesson_terms(example) for example in lesson]
    torch.stack([terms["loss"] for terms in naive]).mean().backward()
    for name, p in reader.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(gradients[name], p.grad, rtol=1e-5, atol=1e-6)
    assert len(naive) == 5
    for name, value in logged.items():
        assert value == pytest.approx(sum(terms[name].item() for terms in naive) / 5)


def test_types_and_text_of_inputs_of_unlike_length(toy):
    reader = untrained(toy)
    seen = {}

    class Spy(torch.nn.Module):
        tokenizer = reader.tokenizer

        def forward(self, ids, mask, types):
            seen.update(ids=ids, mask=mask, types=types)
            return reader(ids, mask, types)

    inputs = [given_input(reader, "where was Alman born?", "Alman", text) for text in ("born", "born in Aron", "")]
    _, passage = extractive.compute_logits(Spy(), inputs, MACHINE)
    for i, row in enumerate(inputs):
        length = len(row.ids)
        assert seen["mask"][i].tolist() == [1] * length + [0] * (passage.shape[1] - length)
        assert seen["types"][i].nonzero().flatten().tolist() == list(range(row.question_length, length))
        assert (passage[i] != NOWHERE).tolist() == [*(row.passage_T == 0), *[False] * (passage.shape[1] - length)]


TINY = {"vocab_size": 500, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "pad_token_id": 0}


@pytest.mark.parametrize(
    "config",
    [RobertaConfig(**TINY, hidden_size=8, max_position_embeddings=80, type_vocab_size=1),
     DistilBertConfig(vocab_size=500, dim=8, n_layers=1, n_heads=2, hidden_dim=8)],
    ids=lambda config: config.model_type,
)  # fmt: skip
def test_any_encoder_reads_with_token_types_or_without(toy, tmp_path, config):
    tokenizer = untrained(toy).tokenizer
    torch.manual_seed(0)
    reader = extractive.ExtractiveReader(AutoModel.from_config(config), tokenizer, READER).eval()
    reader_input = given_input(reader, "where was he born?", "Alman", "born in Aron")
    tmp_path.joinpath("reader").mkdir()
    kinds.save(tmp_path / "reader", reader)
    loaded = kinds.load(tmp_path / "reader")
    with torch.no_grad():
        for expected, actual in zip(
            *(extractive.compute_logits(r, [reader_input], MACHINE)[0][:3] for r in (reader, loaded)), strict=True
        ):
            torch.testing.assert_close(expected, actual)


def test_an_answer_whose_end_no_token_covers_is_not_cut():
    """White space that a pattern matches too, marks that a tokenizer drops."""
    uncut = Input([7, 8, 9, 10], 1, np.array([NOWHERE, 0, 0, 0]), np.array([[0, 0], [0, 4], [4, 7], [7, 12]]), [99])
    assert uncut.span(0, Span(8, 14)) == (3, 3)
    cut = Input([7, 8, 9], 1, uncut.passage_T[:3], uncut.offsets_T2[:3], [7])
    assert (cut.span(0, Span(8, 14)), cut.span(0, Span(5, 8)), cut.span(0, Span(5, 7))) == (None, None, (2, 2))


def test_an_example_has_its_positive_first_and_all_spans_of_the_answers(toy):
    reader = untrained(toy)
    lessons = examples(toy, reader)
    assert len(lessons) == 15
    example = lessons(0, 0)
    assert len(example.inputs) == 3
    positive = example.inputs[0]
    for first, last in example.spans_A2.tolist():
        assert reader.tokenizer.decode(positive.ids[first : last + 1]).strip() == CITIES[0].lower()
    assert len(example.spans_A2) == 1
    negatives = {tuple(row.ids) for epoch in range(9) for row in lessons(0, epoch).inputs[1:]}
    assert len(negatives) == 3  # all that are ranked, but the positive
    assert all(len({tuple(row.ids) for row in lessons(0, epoch).inputs}) == 3 for epoch in range(9))
    assert [tuple(row.ids) for row in lessons(0, 4).inputs] == [tuple(row.ids) for row in lessons(0, 4).inputs]


def test_examples_follow_gold_pages_kinds_and_limits(toy, tmp_path):
    passages = [("a", "One", "Aron, Aron, Belm."), ("b", "Two", "He was born in Aron."), ("c", "Three", "Nothing.")]
    query = question("q", ["Aron", "Belm"])
    write_records(tmp_path, passages=passages, questions=[query])
    store, paths = PassageStore(tmp_path / "passages.parquet"), [(1,), (0,), (2,)]

    def sizes(titles=(), query=query):
        questions = [QuestionPaths(query, paths, frozenset(titles))]
        lessons = passage_examples(untrained(toy), questions, store, tmp_path)
        by_epoch = [lessons(0, epoch) for epoch in range(9)]
        return sorted({(len(example.spans_A2), len(example.inputs)) for example in by_epoch})

    assert (sizes(["One"]), sizes()) == ([(3, 2)], [(1, 2), (3, 2)])
    assert sizes(query=question("r", [r"Bel\w"], "regex")) == [(1, 3)]


def test_a_positive_whose_answer_is_cut_off_teaches_nothing(toy, tmp_path):
    """q has another positive, r has none."""
    passages = [("a", "", "walks " * 70 + "Aron"), ("b", "", "Aron."), ("c", "", "Nothing.")]
    questions = [question("q", ["Aron"]), question("r", ["Aron"])]
    write_records(tmp_path, passages=passages, questions=questions)
    ranked = [(0,), (1,), (2,)], [(0,), (2,)]
    question_paths = [QuestionPaths(query, paths, frozenset()) for query, paths in zip(questions, ranked, strict=True)]
    lessons = passage_examples(untrained(toy), question_paths, PassageStore(tmp_path / "passages.parquet"), tmp_path)
    assert len(lessons) == 1
    assert [len(lessons(0, epoch).spans_A2) for epoch in range(9)] == [1] * 9


@pytest.mark.parametrize("tokens", [1, 512])
def test_the_loss_is_of_the_spans_of_the_positive_and_of_its_selection(toy, tokens, monkeypatch):
    monkeypatch.setitem(extractive.TOKENS, "cpu", tokens)
    reader = untrained(toy)
    example = examples(toy, reader)(0, 0)
    example.inputs.append(given_input(reader, "where?", "", "was " * 60))
    assert len(extractive.group_passes(example.inputs)) == (len(example.inputs) if tokens == 1 else 1)
    assert extractive.group_passes(example.inputs)[0][0] == len(example.inputs) - 1  # not the positive
    with torch.no_grad():
        terms = extractive_terms(reader, example, MACHINE)
        alone = [extractive.compute_logits(reader, [row], MACHINE) for row in example.inputs]
    (positive, passage_PT), *_ = alone
    spans = span_nll(positive.start[0], positive.end[0], passage_PT[0] != NOWHERE, example.spans_A2)
    torch.testing.assert_close(terms["spans"], spans, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(terms["selection"], selection_nll(torch.cat([logits.paths for logits, _ in alone])))


def test_the_loss_is_the_sum_of_its_terms_and_falls(trained):
    loss, spans, choice = (series(trained, f"train/{name}") for name in ("loss", "spans", "selection"))
    for total, *parts in zip(loss, spans, choice, strict=True):
        assert total == pytest.approx(sum(parts), rel=1e-5)
    assert sum(loss[-10:]) / 10 < 0.2 * loss[0]
    metrics = json.loads((trained / "log" / "metrics.json").read_text())
    assert (metrics["steps"], metrics["questions"], metrics["questions_left_out"]) == (120, 15, 0)


def test_a_trained_reader_finds_the_planted_answers(toy, trained, tmp_path):
    paths = toy / "records", toy / "ranking", trained / "reader", tmp_path / "reading"
    assert answer_questions(*paths, settings=READ, hardware=MACHINE) == 5
    answers = {(row.question_id, row.top_k): row for row in tables.rows(paths[3] / "predictions.parquet", Prediction)}
    texts = {q: f"{NAMES[q]} was born in {CITIES[q % len(CITIES)]}." for q in EVALUATED}
    for q in EVALUATED:
        city = CITIES[q % len(CITIES)]
        assert (answers[f"q{q}", 2].answer, answers[f"q{q}", 2].passage_id) == (city, f"p{q}")
        assert texts[q][answers[f"q{q}", 2].start : answers[f"q{q}", 2].end] == city
        assert answers[f"q{q}", 1].passage_id == f"n{q}"  # where one passage is read, it is that one
    assert list(answers) == [(f"q{q}", k) for q in EVALUATED for k in (1, 2, 4)]
    dirs = {"records": toy / "records", "positives": toy / "positives", "reading": paths[3]}
    counts = evaluate_reading(**dirs, outcomes=tmp_path / "outcomes.parquet", of_paths=False, settings=READ, sets=SETS)
    assert counts == {"toy/dev": 5}
    report = summary(tmp_path / "outcomes.parquet", ["toy/dev"])["toy/dev"]
    assert (report["em_1"], report["em_2"], report["f1_2"], report["n_read"]) == (0.0, 1.0, 1.0, 5)
    assert report["by_type"]["where"]["n"] == 5


def test_the_answer_is_that_of_the_selected_passage_whatever_is_surer_of_its_span():
    """A passage without text is never selected; of equals the one ranked first is."""
    scores = [(1.0, -0.1), (2.0, -5.0), (1.5, -0.2), (2.0, -0.1)]  # of the passage, of the span
    paths = [PathScores(9.0, None), *(PathScores(passage, TokenSpan(1, 2, span)) for passage, span in scores)]
    assert [selected_span(paths[:k]) for k in (1, 2, 3, 5)] == [None, (1, "span", -0.1), *[(2, "span", -5.0)] * 2]


def test_a_reading_that_died_goes_on(toy, trained, tmp_path, monkeypatch):
    def answer(out: Path) -> None:
        paths = toy / "records", toy / "ranking", trained / "reader", out / "reading"
        answer_questions(*paths, settings=READ, hardware=MACHINE)

    assert_shards_go_on(answer, "readings", folder=tmp_path, monkeypatch=monkeypatch)


def test_passages_that_say_nothing_are_not_chosen(toy, trained, tmp_path, monkeypatch):
    folder = write_reading(tmp_path / "toy")
    reader = kinds.load(trained / "reader")
    answerer = ExtractiveAnswerer(reader, PassageStore(folder / "records/passages.parquet"), READ, MACHINE)
    monkeypatch.setattr(answerer._passages, "tokens", lambda row: Tokens([], [], np.zeros((0, 2), np.int32)))
    query = question("q", ["x"])
    nothing = Prediction("q", 1, "")
    assert answerer(query, [(0,), (1,)]) == [nothing._replace(top_k=k) for k in READ.top_k]
    for device in ("cpu", "cuda"):
        monkeypatch.setattr(machine, "device", lambda device=device: device)
        assert answerer(query, []) == [nothing._replace(top_k=k) for k in READ.top_k]


def test_what_cannot_be_learnt_from(toy, tmp_path):
    with pytest.raises(ValueError, match="none of the 15 training questions it ranks can be learnt from"):
        train(toy, tmp_path, depth=1)
    with pytest.raises(ValueError, match=r"reader\.tokens must not exceed the 512 positions"):
        train(toy, tmp_path, tokens=600)


@pytest.mark.parametrize("step", [1, 4])
def test_a_training_that_died_at_any_step_ends_with_the_same_bytes(toy, tmp_path, monkeypatch, step):
    changes = {"steps": 4, "dropout": 0.1, "attention_dropout": 0.1}

    def run(out: Path) -> None:
        train(toy, out, **changes)

    assert_goes_on(run, "reader", at=step, steps=4, folder=tmp_path, monkeypatch=monkeypatch)
