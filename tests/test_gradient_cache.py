"""`train.gradient_cache`: the gradients of the plain step, in memory that does not grow with the batch."""

from pathlib import Path

import pytest
import torch

from eadpr.training import contrastive, forward, loop
from eadpr.training.arm import ArmSettings
from eadpr.training.config import Loss, Train
from eadpr.training.encoder import load_pair
from eadpr.training.forward import Encoders
from tests.training_toy import BALANCED, EADPR, MACHINE, PLAIN, SETTINGS, TRAIN, batcher_of

pytestmark = pytest.mark.usefixtures("one_thread")

TOKENS = 60  # several pieces of either side, one to four rows each
REFERENCE = Loss.model_validate(PLAIN | {"form": "reference", "lambda": 0.2, "tau1": 1.0, "tau2": 1.0})
CASES = [  # loss, shared, frozen
    (EADPR, False, "none"), (REFERENCE, True, "none"), (EADPR, False, "passage"),
    (EADPR.model_copy(update={"stop_gradient": "question"}), False, "none"),
    (BALANCED.model_copy(update={"stop_gradient": "symmetric"}), True, "none"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Small pieces in the plain step too, so both drop the same units out."""
    monkeypatch.setattr(forward, "TOKENS", dict.fromkeys(forward.TOKENS, TOKENS))


def started(toy: Path, settings: Train, *, shared: bool = False) -> Encoders:
    encoders = load_pair(toy / "base", SETTINGS.model_copy(update={"shared": shared}))
    for encoder in encoders:
        loop.set_dropout(encoder, hidden=settings.dropout, attention=settings.attention_dropout)
        encoder.train()
    if settings.freeze != "none":
        getattr(encoders, settings.freeze).requires_grad_(requires_grad=False).eval()
    return encoders


def gradients(toy: Path, settings: Train, loss: Loss, *, shared: bool) -> list[torch.Tensor | None]:
    """The sum of two batches' gradients."""
    encoders = started(toy, settings, shared=shared)
    batcher = batcher_of(toy, placebos=loss.needs_placebos, balance=loss.balances, size=8)
    sections = ArmSettings(loss, settings, SETTINGS, MACHINE)
    torch.manual_seed(5)
    for number in range(2):
        contrastive.add_gradient(encoders, batcher.sampled(number), sections)
    return [p.grad for encoder in dict.fromkeys(encoders) for p in encoder.parameters()]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(("loss", "shared", "frozen"), CASES)
def test_gradients_are_those_of_the_plain_step(placed, loss, shared, frozen, dropout):
    torch.set_num_threads(2)  # pieces side by side, but where units are dropped; put back by `one_thread`
    settings = TRAIN.model_copy(update={"dropout": dropout, "attention_dropout": dropout, "freeze": frozen})
    plain = gradients(placed, settings, loss, shared=shared)
    cached = gradients(placed, settings.model_copy(update={"gradient_cache": TOKENS}), loss, shared=shared)
    for gradient, expected in zip(cached, plain, strict=True):
        assert (gradient is None) == (expected is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-5)
    assert any(grad is not None and grad.abs().sum() > 0 for grad in cached)


class Held:
    """A tensor that a graph keeps for its gradient."""

    def __init__(self, tensor: torch.Tensor, count: list[int]) -> None:
        self.tensor, self._count = tensor, count
        count.append(count[-1] + tensor.nbytes)

    def __del__(self) -> None:
        self._count.append(self._count[-1] - self.tensor.nbytes)


def most_held(toy: Path, questions: int, tokens: int | None) -> int:
    """The most bytes that graphs hold at any time of a batch's way to its gradients, weights aside."""
    train = TRAIN.model_copy(update={"gradient_cache": tokens})
    encoders, sections = started(toy, train), ArmSettings(EADPR, train, SETTINGS, MACHINE)
    weights = {p.data_ptr() for encoder in encoders for p in encoder.parameters()}
    count = [0]

    def pack(tensor: torch.Tensor) -> torch.Tensor | Held:
        return tensor if tensor.data_ptr() in weights else Held(tensor, count)

    batch = batcher_of(toy).first(range(questions))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda stored: getattr(stored, "tensor", stored)):
        contrastive.add_gradient(encoders, batch, sections)
    assert count[-1] == 0
    return max(count)


def test_what_graphs_hold_until_the_gradients_does_not_grow_with_the_batch(toy):
    """But for the vectors and their scores."""
    assert most_held(toy, 15, None) > 4 * most_held(toy, 3, None)
    assert most_held(toy, 15, None) > 30 * most_held(toy, 15, TOKENS)
