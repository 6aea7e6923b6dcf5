"""Pieces of work on several threads of torch: order, modes, errors, sums of gradients."""

import threading
import time

import pytest
import torch

from eadpr.runtime.parallel import add_gradients, ahead, spread, uses_dropout
from tests.conftest import threads


@pytest.mark.usefixtures("two_threads")
def test_results_come_in_the_order_of_the_pieces_from_other_threads():
    def work(piece):
        time.sleep(0.02 * (piece % 3))
        return piece, threading.get_ident(), torch.get_num_threads()

    pieces, workers, torch_threads = zip(*spread(work, range(9)), strict=True)
    assert pieces == tuple(range(9))
    assert threading.get_ident() not in workers
    assert (len(set(workers)), set(torch_threads)) == (2, {1})
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_pieces_in_turn_run_in_the_caller_with_all_threads():
    results = spread(lambda _: (threading.get_ident(), torch.get_num_threads()), [1, 2], together=False)
    assert list(results) == [(threading.get_ident(), 2)] * 2


@pytest.mark.usefixtures("two_threads")
def test_pieces_run_in_the_modes_of_the_caller():
    def modes(_):
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")

    assert list(spread(modes, [0])) == [(True, False, False)]
    with torch.no_grad():
        assert list(spread(modes, [0])) == [(False, False, False)]
    with torch.inference_mode():
        assert list(spread(modes, [0])) == [(False, True, False)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert list(spread(modes, [0])) == [(True, False, True)]
        assert next(spread(lambda _: torch.ones(2, 2) @ torch.ones(2, 2), [0])).dtype == torch.bfloat16


@pytest.mark.usefixtures("two_threads")
def test_an_error_reaches_the_caller_and_leaves_the_threads_as_they_were():
    def work(piece):
        if piece == 3:
            raise ValueError("piece 3")
        return piece

    with pytest.raises(ValueError, match="piece 3"):
        list(spread(work, range(9)))
    assert torch.get_num_threads() == 2


def gradients(count: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    pieces, parameters = list(torch.randn(7, 30, 40)), list(model.parameters())
    with threads(count):
        add_gradients(parameters, lambda piece: torch.autograd.grad(model(piece).square().sum(), parameters), pieces)
    return [p.grad for p in parameters]


def test_gradients_have_the_same_bytes_whatever_the_number_of_threads():
    serial, threaded = gradients(1), gradients(3)
    assert all(torch.equal(a, b) for a, b in zip(serial, threaded, strict=True))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_results_ahead_come_in_order_and_an_error_reaches_the_caller(count):
    started = []

    def make(piece):
        started.append(piece)
        return 6 / piece

    results = ahead(make, [1, 2, 3, 0, 6], threads=count)
    assert next(results) == 6
    assert len(started) <= count + 1
    assert [next(results), next(results)] == [3, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(ahead(make, [], threads=count)) == []


@pytest.mark.usefixtures("two_threads")
def test_gradients_are_added_and_none_is_none():
    first, second, third = (torch.zeros(2, requires_grad=True) for _ in range(3))
    first.grad = torch.ones(2)
    add_gradients([first, second, third], lambda piece: (torch.full((2,), piece), torch.ones(2), None), [2.0, 3.0])
    assert (first.grad.tolist(), second.grad.tolist()) == ([6.0, 6.0], [2.0, 2.0])
    assert third.grad is None


def test_a_dropout_above_zero_draws():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.0))
    assert not uses_dropout(module)
    module[1].p = 0.1
    assert uses_dropout(module)
    module[1].p = 0.0
    module[0].attention_dropout = 0.1  # some models keep it so
    assert uses_dropout(module)
