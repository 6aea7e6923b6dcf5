"""Tokens and sentences against a naive loop: their scores, padding, gradients, rankings and probe."""

import re
from functools import partial
from itertools import accumulate, pairwise

import pytest
import torch
from torch.nn.functional import cosine_similarity

from eadpr.library.scorers import make_scorer
from eadpr.runtime.files import read_json, write_json
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode, Probe, Retrieve
from eadpr.search.encode import embed, encode
from eadpr.search.late import score_passage, split_tokens
from eadpr.search.probe import probe
from eadpr.search.retrieve import retrieve
from eadpr.storage import tables
from eadpr.storage.records import Distractor, PairScore, Positive, Ranked
from eadpr.training import contrastive, late
from eadpr.training.arm import ArmSettings
from eadpr.training.config import AUTO
from eadpr.training.encoder import load, load_pair
from eadpr.training.padding import pad
from eadpr.training.sentences import MARK
from tests import small_collection as small
from tests import training_toy

SPECIAL = {"[CLS]", "[SEP]", "[PAD]"}


def texts(lengths, dim=5, seed=0):
    """Return states, (B, T, D) with noise behind each text, and which of them are tokens of the text."""
    torch.manual_seed(seed)
    keep = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), dim), keep


def naive(questions, passages):
    """Score lists of token states, one pair of tokens at a time."""

    def score(question, passage):
        return sum(max(cosine_similarity(a, b, dim=0) for b in passage) for a in question) / len(question)

    return torch.tensor([[score(question, passage) for passage in passages] for question in questions])


def test_late_scores_equal_a_naive_loop_over_tokens(monkeypatch):
    monkeypatch.setattr(late, "COSINES", 40)  # several parts
    (questions, keep_q), (passages, keep_p) = texts([2, 4, 3]), texts([3, 6, 1, 5], seed=1)
    expected = naive(
        [states[mask] for states, mask in zip(questions, keep_q, strict=True)],
        [states[mask] for states, mask in zip(passages, keep_p, strict=True)],
    )
    scores = late.late_scores(late.token_rows(questions, keep_q, 9), late.token_rows(passages, keep_p, 9), 5)
    torch.testing.assert_close(scores, expected)


def test_a_score_depends_neither_on_the_width_nor_on_where_the_left_out_tokens_stand():
    states, keep = texts([4, 4])
    keep[0] = torch.tensor([False, True, True, False])  # special tokens at both ends
    alone = late.token_rows(states[:1, 1:3], keep[:1, 1:3], 2)
    padded = late.token_rows(states, keep, 8)
    passages = late.token_rows(*texts([3, 2], seed=1), 4)
    torch.testing.assert_close(late.late_scores(padded, passages, 5)[:1], late.late_scores(alone, passages, 5))
    torch.testing.assert_close(late.late_scores(passages, padded, 5)[:, :1], late.late_scores(passages, alone, 5))


def test_a_text_without_tokens_scores_0_as_a_question():
    empty = late.token_rows(*texts([1]), 2) * 0
    assert late.late_scores(empty, late.token_rows(*texts([3], seed=1), 4), 5).tolist() == [[0.0]]


def test_only_the_matching_token_of_a_passage_gets_a_gradient():
    states = torch.tensor([[[1.0, 0.1], [0.1, 1.0]]], requires_grad=True)
    question = late.token_rows(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[True]]), 1)
    late.late_scores(question, late.token_rows(states, torch.ones(1, 2, dtype=torch.bool), 2), 2).sum().backward()
    assert states.grad[0, 0].abs().sum() > 0
    assert states.grad[0, 1].abs().sum() == 0


def step_of(toy, settings, loss, cache, **options):
    """A batch, its terms and its gradients without dropout; `options` are of the batcher."""
    train = training_toy.TRAIN.model_copy(update={"gradient_cache": cache, "dropout": 0.0, "attention_dropout": 0.0})
    encoders = load_pair(toy / "base", settings)
    batch = training_toy.batcher_of(toy, settings=settings, size=8, **options).sampled(0)
    terms = contrastive.add_gradient(encoders, batch, ArmSettings(loss, train, settings, training_toy.MACHINE))
    return batch, terms, [p.grad for p in encoders.passage.parameters() if p.grad is not None]


@pytest.mark.parametrize("unit", ["token", "sentence"])
@pytest.mark.usefixtures("one_thread")
def test_gradients_of_all_losses_go_through_parts_with_and_without_gradient_cache(toy, unit):
    step = partial(step_of, toy, training_toy.SETTINGS.model_copy(update={"unit": unit, "shared": True}))
    (batch, plain_terms, plain), (_, cached_terms, cached) = (step(training_toy.EADPR, cache) for cache in (None, 60))
    assert any(ids.max() >= MARK for ids in batch.passages) == (unit == "sentence")
    assert plain
    assert all(term > 0 for term in plain_terms[:4])
    torch.testing.assert_close(cached_terms, plain_terms)
    torch.testing.assert_close(cached, plain, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_validation_ranks_by_tokens_as_a_naive_loop_does(toy):
    settings = training_toy.SETTINGS.model_copy(update={"unit": "token"})
    train = training_toy.TRAIN.model_copy(update={"batch_size": 3, "validation_hard_negatives": 2})
    encoders, batcher = load_pair(toy / "base", settings), training_toy.batcher_of(toy, settings=settings, size=3)
    everyone = list(range(len(batcher)))
    pool, gold = contrastive.make_pool(batcher.examples, batcher.examples_of(everyone), 2)
    questions = [states_of(encoders.question, ids.tolist()) for i in everyone for ids in batcher.first([i]).questions]
    scores = naive(questions, [states_of(encoders.passage, ids.tolist()) for ids in batcher.inputs.ids(pool)])
    above = sum(int((row >= row[i]).sum()) - 1 for row, i in zip(scores, gold, strict=True))
    sections = ArmSettings(training_toy.EADPR, train, settings, training_toy.MACHINE)
    assert contrastive.validate(encoders, batcher, everyone, sections).average_rank == above / len(gold)


def states_of(encoder, ids):
    """Return the states of a text's tokens without the special ones."""
    states = encoder.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    words = encoder.tokenizer.convert_ids_to_tokens(ids)
    return states[[i for i, word in enumerate(words) if word not in SPECIAL]]


def sentence_states(states, title, text):
    """Return the mean state of each sentence that has a token among the `states` of title and text."""
    ends = list(accumulate(len(piece.replace(".", " .").split()) for piece in (title, *text.split("\n\n"))))
    means = [states[first:end].mean(0) for first, end in pairwise(ends) if first < len(states)]
    return torch.stack(means)


def in_sentences(text):
    """Put a stop and a gap behind every fourth word, so that a sentence ends there."""
    return re.sub(r"((?:w\d+ ){3}w\d+) ", r"\1.\n\n", text)


def naive_scores(model, unit, question_texts, rows):
    """Return the scores of questions and passages, and the vectors of each passage's parts."""
    question_encoder, plain = (load(model, side, AUTO) for side in ("question", "passage"))
    states = [states_of(plain, ids) for ids in plain.passage_ids([p.title for p in rows], [p.text for p in rows])]
    question_ids = question_encoder.question_ids(question_texts)
    questions = [states_of(question_encoder, ids) for ids in question_ids]
    if unit == "sentence":
        states = [sentence_states(read, row.title, row.text) for read, row in zip(states, rows, strict=True)]
        questions = torch.from_numpy(embed(question_encoder, question_ids)).unsqueeze(1)
    return naive(questions, states), states


@pytest.mark.parametrize("form", ["pair", "joined"])
@torch.no_grad()
def test_a_sentence_begins_at_its_first_token_whatever_stands_before_the_text(tmp_path, form):
    """İ is two characters in lower case. The text ends beyond the 8th token, so that its last sentence is not read."""
    model = small.write_model(tmp_path / "model", passage_tokens=10)
    changes = {"unit": "sentence", "title": form, "lowercase": True, "prompts": {"question": "", "passage": "w0 "}}
    write_json(model / "encoder.json", read_json(model / "encoder.json") | changes)
    encoder = load(model, "passage")
    long, short, untitled, empty = encoder.passage_ids(["İ"] * 2 + ["", "w1"], [" İ w3. W4! W5. W6", "w3", "W4", ""])
    words = encoder.tokenizer.convert_ids_to_tokens([token % MARK for token in long if token >= MARK])
    assert words == ["[UNK]", "w4", "w5"][: 2 if form == "pair" else 3]
    assert encoder.unread == 4 - len(words)
    assert [sum(token >= MARK for token in ids) for ids in (short, untitled, empty)] == [1, 1, 0]
    row = encoder(*pad([untitled], encoder.pad_id))[0]
    states = encoder.model(torch.tensor([[token % MARK for token in untitled]])).last_hidden_state[0]
    torch.testing.assert_close(row[:16], torch.nn.functional.normalize(states[2], dim=0))  # [CLS] w0 W4 [SEP]
    assert not row[16:].any()


@pytest.mark.parametrize("unit", ["token", "sentence"])
@torch.no_grad()
def test_rankings_and_pair_scores_are_those_of_a_naive_loop_over_all_passages(tmp_path, capsys, unit):
    rows = [row._replace(text=in_sentences(row.text)) for row in small.passages()]  # of a third the end is not read
    queries = [small.question(f"q{i}", text, ["w1"]) for i, text in enumerate(["where was w3 w4", "w7", "w1 w9 born"])]
    records = small.write_records(tmp_path / "records", rows, queries, train=1)
    model = small.write_model(tmp_path / "model")
    vectors = Encode.model_validate(small.ENCODE), Machine.model_validate(small.MACHINE)
    encode(records / "passages.parquet", model, tmp_path / "pooled", settings=vectors[0], hardware=vectors[1])
    write_json(model / "encoder.json", read_json(model / "encoder.json") | {"unit": unit})
    encode(records / "passages.parquet", model, tmp_path / "vectors", settings=vectors[0], hardware=vectors[1])
    assert small.files_of(tmp_path / "vectors") == small.files_of(tmp_path / "pooled")

    sets = Sets.model_validate(small.SETS)
    settings = Retrieve.model_validate(small.RETRIEVE | {"depth": 5, "candidates": len(rows)})
    retrieve(records, model, tmp_path / "vectors", tmp_path / "out", settings=settings, sets=sets, hardware=vectors[1])
    expected, states = naive_scores(model, unit, [q.question for q in queries], rows)
    if unit == "sentence":
        left_out = sum(row.text.count("\n\n") + 1 for row in rows) - sum(map(len, states))
        assert f"by sentence: {left_out} sentences" in capsys.readouterr().err
    ranked = list(tables.rows(tmp_path / "out" / "evaluate.parquet", Ranked))
    for number in (1, 2):
        best = expected[number].topk(5)
        of_question = [row for row in ranked if row.question_id == f"q{number}"]
        assert [row.passage_id for row in of_question] == [f"p{i}" for i in best.indices.tolist()]
        torch.testing.assert_close(torch.tensor([row.score for row in of_question]), best.values)

    low = vectors[1].model_copy(update={"precision": "bfloat16"})
    retrieve(records, model, tmp_path / "vectors", tmp_path / "low", settings=settings, sets=sets, hardware=low)
    scores = [row.score for row in tables.rows(tmp_path / "low" / "evaluate.parquet", Ranked)]
    assert 1e-5 < max(abs(row.score - score) for row, score in zip(ranked, scores, strict=True)) < 0.02

    positives = [Positive("q1", "p2", "given", None)]
    distractors = [Distractor("q1", "p2", "gold", 0, "cut", rows[3].text, [])]
    small.write_positives(tmp_path / "positives", positives, distractors)
    paths = [tmp_path / "positives" / name for name in ("positives.parquet", "distractors.parquet")]
    probed = Probe(annotated=False, strategy="gold", also=[], placebos=[])
    for hardware, most in ((vectors[1], 1e-5), (low, 0.02)):
        probe(records, *paths, model, tmp_path / "pairs.parquet", settings=probed, sets=sets, hardware=hardware)
        scores = {row.variant: row.score for row in tables.rows(tmp_path / "pairs.parquet", PairScore)}
        assert scores["positive"] == pytest.approx(float(expected[1, 2]), abs=most)
    assert scores["positive"] != pytest.approx(float(expected[1, 2]), abs=1e-5), "in bfloat16"
    scorer = make_scorer(model)
    scores = scorer.score([q.question for q in queries], [rows[2].title] * 3, [rows[2].text] * 3)
    torch.testing.assert_close(torch.from_numpy(scores), expected[:, 2])


def test_scores_of_packed_tokens_are_those_of_rows():
    (questions, keep_q), (passages, keep_p) = texts([2, 4, 3, 1]), texts([3, 6, 1], seed=1)
    keep_q[3], keep_p[2] = False, False  # texts of special tokens alone
    rows, columns = late.token_rows(questions, keep_q, 7), late.token_rows(passages, keep_p, 9)
    packed = split_tokens(rows, 5)
    scores = [score_passage(packed, passage) for passage in split_tokens(columns, 5)]
    torch.testing.assert_close(torch.stack(scores, 1), late.late_scores(rows, columns, 5), atol=1e-6, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(score_passage(packed, split_tokens(columns, 5)[0]), scores[0])
