"""Training by the processes that torchrun started, or by this one alone where it started none.

All draw the same batches. Each tokenises and encodes its share of a batch's rows, and gets the other masks and vectors
from the other processes, so that all compute the same loss of the whole batch; each takes the gradients of its share
back to the weights, and the sum over processes is the gradient of the batch. So W processes take the steps of one, up
to rounding and to the units that are dropped out, and the loss does not know of them.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

STARTED = "TORCHELASTIC_RUN_ID"  # set by torchrun; WORLD_SIZE alone may be left over from a cluster's job


def launch(module: str, processes: int | Literal["auto"]) -> None:
    """Become torchrun if `processes` is more than one; each of these runs `module` with the same options.

    In these, and for one process, do nothing. `auto`: one for each GPU. The process must be settled (`machine.settle`).
    """
    if STARTED in os.environ:
        return
    cards = torch.cuda.device_count()
    number = max(1, cards) if processes == "auto" else processes
    if number > cards > 0:
        raise ValueError(f"train.processes is {number}, but there are {cards} GPUs; set it to auto or at most {cards}")
    if number > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
        torchrun += ["-m", "--", module]  # without -- it takes our --log for the beginning of options of its own
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv[1:]])


@contextmanager
def group() -> Iterator[None]:
    """Join the processes that torchrun started."""
    if STARTED not in os.environ or os.environ["WORLD_SIZE"] == "1":
        yield
        return
    cards = torch.cuda.is_available()
    if cards:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # With GPUs torch would take NCCL alone, but `broadcast` sends tensors of the CPU.
    dist.init_process_group("cpu:gloo,cuda:nccl" if cards else "gloo")
    yield
    dist.destroy_process_group()  # not after an error: torchrun ends the others, which may be waiting for this one


def count() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def first() -> bool:
    """Return whether this process writes files and shows progress."""
    return rank() == 0


def share() -> slice:
    """Return which rows of a batch are this process's: every W-th."""
    return slice(rank(), None, count())


def new_group() -> Any:
    """Return all processes as a group for a thread beside the main one, whose messages must not meet the others."""
    return dist.new_group(backend="gloo") if count() > 1 else None


def summed(values: Tensor, group: Any = None) -> Tensor:
    """Replace the values of each process by their sum over all processes, in place."""
    if count() > 1:
        dist.all_reduce(values, group=group)
    return values


def sum_gradients(parameters: Sequence[Tensor]) -> None:
    """Give each parameter the sum of its gradients over all processes; without any it keeps None."""
    if count() == 1:
        return
    present = torch.tensor([float(p.grad is not None) for p in parameters])  # of the CPU: no card is waited for
    reached = [p for p, some in zip(parameters, summed(present).tolist(), strict=True) if some]
    for parameter in reached:
        if parameter.grad is None:  # a process without rows of this encoder
            parameter.grad = torch.zeros_like(parameter)
    total = summed(torch.cat([parameter.grad.flatten() for parameter in reached]))
    for parameter, gradient in zip(reached, total.split([p.numel() for p in reached]), strict=True):
        parameter.grad.copy_(gradient.view_as(parameter))


def broadcast(value: Any) -> Any:
    """Return the value of the first process, in every process."""
    values = [value]
    if count() > 1:
        dist.broadcast_object_list(values, src=0, device=torch.device("cpu"))
    return values[0]
