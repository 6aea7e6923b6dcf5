"""`loss.scale` and the similarity of an encoder: every score that a loss sees, against naive loops, and the search."""

import json

import pytest
import torch

from eadpr.training import contrastive
from eadpr.training.arm import ArmSettings, prepare_encoders
from eadpr.training.config import Loss
from eadpr.training.encoder import Encoders, TextEncoder, load_pair, settings_of
from tests.test_losses import naive
from tests.test_training import train as train_arm
from tests.training_toy import DPR, EADPR, MACHINE, PLAIN, SETTINGS, TRAIN, batcher_of, series

pytestmark = pytest.mark.usefixtures("one_thread")

COSINE = SETTINGS.model_copy(update={"similarity": "cosine"})
WEIGHTS = {"lambda": 0.3, "dpr": 0.8, "tau1": 0.7, "tau2": 1.5}
LOSSES = [Loss.model_validate(PLAIN | WEIGHTS | changes) for changes in (
    {}, {"balance": "placebo", "placebo": 0.5}, {"balance": "both", "placebo": 0.5}, {"form": "reference", "dpr": 1.0},
    {"stop_gradient": "symmetric"}, {"stop_gradient": "passage"}, {"stop_gradient": "question"},
    {"anchor": "passage", "lambda": 0.0},
)]  # fmt: skip


@pytest.fixture
def in_double(monkeypatch):
    """All of a step in float64, so that a gradient is the same to 1e-9 and no rounding hides a mistake."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def direction(encoder: TextEncoder, ids: list[int]) -> torch.Tensor:
    """Return the mean state of a text, of length 1."""
    states = encoder.model(input_ids=torch.tensor(ids)[None]).last_hidden_state[0]
    mean = sum(states) / len(states)
    return mean / (mean * mean).sum().sqrt()


def naive_loss(questions, passages, batch, loss: Loss, scale: float) -> torch.Tensor:
    """The loss of a batch, question by question; `questions` and `passages` are lists of vectors."""
    questions = [v.detach() for v in questions] if loss.stop_gradient == "question" else questions
    fixed = loss.stop_gradient in ("passage", "symmetric")
    columns = [passages[row].detach() if fixed else passages[row] for row in batch.columns_P.tolist()]
    s = [[scale * (question.double() * column.double()).sum() for column in columns] for question in questions]
    terms = naive(s, batch.masks, loss.lambda_, loss.form, loss.balances)
    first = terms["flipped"] if loss.anchor == "passage" else terms["dpr"]
    total = loss.dpr * first + loss.tau1 * terms["hn"] + loss.tau2 * terms["pp"] + terms["plain"]
    return total + loss.placebo * terms["placebo"]


def naive_total(encoders: Encoders, batch, loss: Loss, scale: float) -> torch.Tensor:
    questions = [direction(encoders.question, ids) for ids in batch.questions]
    passages = [direction(encoders.passage, ids) for ids in batch.passages]
    total = naive_loss(questions, passages, batch, loss, scale)
    if loss.stop_gradient != "symmetric":
        return total
    plain = {"lambda": 0.0, "tau1": 0.0, "tau2": 0.0, "anchor": "passage", "stop_gradient": "question"}
    back = Loss.model_validate(loss.model_dump() | plain)
    return (total + naive_loss(questions, passages, batch, back, scale)) / 2


def started(folder, loss: Loss, *, shared: bool = False, cached: bool = False) -> tuple[Encoders, ArmSettings]:
    train = TRAIN.model_copy(
        update={"dropout": 0.0, "attention_dropout": 0.0, "gradient_cache": 60 if cached else None}
    )
    settings = ArmSettings(loss, train, COSINE.model_copy(update={"shared": shared}), MACHINE)
    return prepare_encoders(load_pair(folder / "base", settings.encoder), settings), settings


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_a_step_by_cosine_and_scale_equal_a_naive_loop(placed, loss, cached):
    """20 is the scale of cosine; each comparison of `both` weighs half."""
    encoders, settings = started(placed, loss, shared=cached, cached=cached)
    for encoder in encoders:
        encoder.double()
    batch = batcher_of(placed, placebos=loss.needs_placebos, balance=loss.balances, size=5).sampled(0)
    terms = contrastive.add_gradient(encoders, batch, settings)
    parameters = list(dict.fromkeys(p for encoder in encoders for p in encoder.parameters()))
    gradients = [p.grad for p in parameters]
    for parameter in parameters:
        parameter.grad = None
    expected = naive_total(encoders, batch, loss, 20.0)
    expected.backward()
    assert terms[0].item() == pytest.approx(expected.item(), rel=1e-9)
    for gradient, parameter in zip(gradients, parameters, strict=True):
        assert (gradient is None) == (parameter.grad is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, parameter.grad, atol=1e-9, rtol=1e-9)
    assert any(gradient is not None and gradient.abs().max() > 1e-3 for gradient in gradients)


def test_validation_sees_the_scale_in_its_loss_and_not_in_its_ranks(toy):
    measures = {}
    for scale in ("auto", 20.0, 3.0):
        encoders, settings = started(toy, DPR.model_copy(update={"scale": scale}))
        batcher = batcher_of(toy, distractors=False)
        measures[scale] = contrastive.validate(encoders, batcher, range(4), settings)
        with torch.no_grad():
            expected = naive_total(encoders, batcher.first(range(4)), DPR, 3.0 if scale == 3.0 else 20.0).item()
        assert measures[scale].nll == pytest.approx(expected, rel=1e-5)
    assert measures["auto"] == measures[20.0]
    assert len({round(values.nll, 3) for values in measures.values()}) == 2
    assert len({values.average_rank for values in measures.values()}) == 1


def train(folder, out, init, *, scale, settings=SETTINGS) -> list[float]:
    """The losses of two steps into `out/model` and `out/log`."""
    loss, changes = EADPR.model_copy(update={"scale": scale}), {"dropout": 0.0, "attention_dropout": 0.0}
    train_arm(folder, out, loss=loss, settings=settings, init=init, steps=2, learning_rate=1e-9, **changes)
    return series(out, "train/loss")


def test_a_model_keeps_the_scale_that_it_was_trained_with(toy, tmp_path):
    by_dot = train(toy, tmp_path / "dot", toy / "base", scale="auto")
    assert "scale" not in json.loads((tmp_path / "dot/model/encoder.json").read_text())
    assert train(toy, tmp_path / "one", toy / "base", scale=1.0) == by_dot
    seven = train(toy, tmp_path / "seven", toy / "base", scale=7.0, settings=COSINE)
    assert settings_of(tmp_path / "seven/model").scale == 7.0
    again = train(toy, tmp_path / "again", tmp_path / "seven/model", scale="auto", settings=COSINE)
    assert again == pytest.approx(seven, rel=1e-4)
    assert settings_of(tmp_path / "again/model").scale == 7.0
    train(toy, tmp_path / "back", tmp_path / "seven/model", scale="auto", settings=SETTINGS)
    assert settings_of(tmp_path / "back/model").loss_scale == 1.0, "of dot products again"
