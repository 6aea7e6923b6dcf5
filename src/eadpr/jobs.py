"""Long work in shards, each a file that depends on its number only, so that who makes it decides none of its bytes:
this process, or with EADPR_RAY set the actors of a Ray cluster (`ray_jobs`)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence

from eadpr import machine, parallel, ray_jobs
from eadpr.machine import Machine

Work = Callable[[int], Iterator[int]]  # makes a shard by its number; gives the units done (passages, pairs) as it goes

WORKERS = {"cpu": 1, "cuda": 3}  # on a GPU, one tokenises or writes while another computes


def run(make: Callable[[], Work], numbers: Sequence[int], hardware: Machine) -> Iterator[int]:
    """Make the shards `numbers`; gives units done as they are done. `make` is called once by every worker."""
    workers = WORKERS[machine.device()]
    if os.environ.get(ray_jobs.ADDRESS):
        yield from ray_jobs.run(make, numbers, hardware=hardware, workers=workers)
    elif workers == 1:
        work = make()
        for number in numbers:
            yield from work(number)
    else:
        yield from parallel.ahead(_each_thread(make), numbers, threads=workers)


def _each_thread(make: Callable[[], Work]) -> Callable[[int], int]:
    """Work of its own for every thread, since tokenizers keep their settings; the libraries that load models are used
    by one thread at a time."""
    mine, loading = threading.local(), threading.Lock()

    def whole(number: int) -> int:
        if not hasattr(mine, "work"):
            with loading:
                mine.work = make()
        return sum(mine.work(number))

    return whole
