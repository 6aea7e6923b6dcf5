"""The evidence of a positive against its rest, by tokens: a naive loop, which tokens, gradients, a training's log."""

import math
from functools import partial

import pytest
import torch

from eadpr.runtime.files import read_json
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Distractor, Span
from eadpr.training import late
from eadpr.training.encoder import load_pair
from eadpr.training.losses import Masks, rest_loss
from tests import training_toy
from tests.test_late import naive, step_of, texts
from tests.test_training import train

SETTINGS = training_toy.SETTINGS.model_copy(update={"unit": "token", "shared": True})


def test_a_part_scores_as_a_passage_of_its_tokens_alone():
    (questions, keep_q), (passages, keep_p) = texts([2, 4, 3]), texts([3, 6, 5], seed=1)
    parts = torch.rand(3, 2, 6, generator=torch.manual_seed(4)) < 0.5
    parts = parts & keep_p[:, None]
    parts[:, :, 0] = True
    rows, columns = late.token_rows(questions, keep_q, 9), late.token_rows(passages, keep_p, 9)
    scores = late.part_scores(rows, columns, parts, 5)
    expected = [
        naive([questions[i][keep_q[i]]], [passages[i][mask] for mask in parts[i]])[0] for i in range(len(questions))
    ]
    torch.testing.assert_close(scores, torch.stack(expected))
    parts[0, 1] = False
    assert late.part_scores(rows, columns, parts, 5)[0, 1] == pytest.approx(-1)


def test_the_rest_is_one_more_negative_of_the_evidence():
    scores = torch.tensor([[3.0, 1.0, 0.5, 2.0], [0.2, 2.5, 1.5, 0.1]], dtype=torch.float64)
    parts = torch.tensor([[2.0, 1.8], [0.4, 0.9]], dtype=torch.float64)
    negatives = torch.tensor([[False, True, True, False], [True, False, True, True]])
    none = torch.zeros(2, 2, dtype=torch.bool)
    masks = Masks(negatives, none, none[:1], none[:0, 0], torch.tensor([True, True]))
    losses = []
    for (evidence, rest), row, allowed in zip(parts.tolist(), scores.tolist(), negatives.tolist(), strict=True):
        below = [math.exp(score) for score, counts in zip(row, allowed, strict=True) if counts]
        losses.append(-math.log(math.exp(evidence) / (math.exp(evidence) + math.exp(rest) + sum(below))))
    assert rest_loss(parts, scores, masks).item() == pytest.approx(sum(losses) / 2)
    second_only = masks._replace(parts_Q=torch.tensor([False, True]))
    assert rest_loss(parts, scores, second_only).item() == pytest.approx(losses[1])
    assert rest_loss(parts, scores, masks._replace(parts_Q=torch.zeros(2, dtype=torch.bool))).item() == 0


def words_of(batcher, encoder, example):
    """The words of the evidence and of the rest of an example's positive, as `parts` says."""
    ids = batcher.inputs.ids([int(batcher.examples.positives[example])])[0]
    tokens = [i for i in ids.tolist() if i not in encoder.tokenizer.all_special_ids]
    return [
        encoder.tokenizer.decode([i for i, of_part in zip(tokens, part, strict=True) if of_part]).replace(" ##", "")
        for part in batcher.inputs.parts([example])[0]
    ]


def test_the_parts_of_a_positive_are_its_evidence_and_its_rest_behind_the_title(toy):
    batcher = training_toy.batcher_of(toy, settings=SETTINGS, rest=0.5)
    encoder = load_pair(toy / "base", SETTINGS)[1]
    name = training_toy.NAMES[0].lower()
    about = f"the birthplace of {name} is often asked about"
    parts = [part.replace(" .", ".").strip() for part in words_of(batcher, encoder, 0)]
    assert parts[0] == f"{name} {name} was born in {training_toy.CITIES[0].lower()}."
    assert parts[1].startswith(f"{name} {about}.")
    batch = batcher.first(range(len(batcher)))
    assert (batch.counts["without_rest"], batcher.count_all()["without_rest"]) == (1, 1)  # the one without a distractor
    assert batch.masks.parts_Q.tolist() == [*[True] * (len(batcher) - 1), False]
    assert training_toy.batcher_of(toy, settings=SETTINGS).first([0]).parts_Q2T is None


def test_the_parts_of_a_positive_of_sentences_are_its_sentences_with_evidence_and_the_others(toy):
    batcher = training_toy.batcher_of(toy, settings=SETTINGS.model_copy(update={"unit": "sentence"}), rest=0.5)
    assert batcher.inputs.parts([0])[0].tolist() == [[True, False, False], [False, True, True]]
    assert (batcher.count_all()["without_rest"], batcher.first([len(batcher) - 1]).counts["without_rest"]) == (1, 1)


@pytest.mark.parametrize(("first", "tokens"), [("whole", 48), ("cut", 12)])
def test_a_positive_without_evidence_or_rest_that_the_encoder_reads_takes_no_part(toy, first, tokens):
    settings = SETTINGS.model_copy(update={"passage_tokens": tokens})
    batcher = training_toy.batcher_of(toy, settings=settings, rest=0.5)
    text = PassageStore(toy / "records" / "passages.parquet").texts([int(batcher.examples.positives[0])])[0]
    batcher.examples.evidence[0] = [Span(0, len(text)) if first == "whole" else Span(len(text) - 6, len(text))]
    assert not batcher.first([0]).masks.parts_Q.any()


@pytest.mark.parametrize("unit", ["token", "sentence"])
@pytest.mark.usefixtures("one_thread")
def test_gradients_of_the_rest_are_those_with_a_gradient_cache(toy, unit):
    step = partial(step_of, toy, SETTINGS.model_copy(update={"unit": unit}), distractors=False, rest=0.5)
    loss = training_toy.EVIDENCE
    (_, terms, plain), (_, cached_terms, cached) = step(loss, None), step(loss, 60)
    assert terms[-1] > 0
    assert terms[0] == pytest.approx((terms[1] + 0.5 * terms[-1]).item())
    torch.testing.assert_close(cached_terms, terms)
    torch.testing.assert_close(cached, plain, atol=1e-5, rtol=1e-4)
    _, _, without = step(loss.model_copy(update={"rest": 0.0}), None)
    assert max((a - b).abs().max().item() for a, b in zip(plain, without, strict=True)) > 1e-3


def test_a_training_logs_the_rest_and_lifts_the_evidence_above_it(toy, tmp_path):
    train(toy, tmp_path, loss=training_toy.EVIDENCE, settings=SETTINGS, steps=30, batch_size=8)
    terms = [training_toy.series(tmp_path, f"train/{name}") for name in ("loss", "dpr", "rest")]
    for total, dpr, rest in zip(*terms, strict=True):
        assert total == pytest.approx(dpr + 0.5 * rest, rel=1e-5)
    assert sum(terms[2][-5:]) < 0.8 * sum(terms[2][:5])
    assert read_json(tmp_path / "log" / "metrics.json")["without_rest"] == 1
    assert set(training_toy.series(tmp_path, "train/without_rest")) == {0.0, 1.0}


def test_examples_without_evidence_are_refused(toy, tmp_path):
    folder = training_toy.write_collection(tmp_path)
    tables.write(folder / "examples" / "distractors.parquet", Distractor, ())
    with pytest.raises(ValueError, match="spans of evidence"):
        train(folder, tmp_path, loss=training_toy.EVIDENCE, settings=SETTINGS, init=toy / "base")
