"""The two sides of a training, each for a process of its own: how threads wait is set before torch is imported.

Ours is settled as the stages that train are, the peer's as torch is unless told, which is faster for it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def ours(folder: str, size: dict[str, Any], loss: dict[str, float]) -> Callable[[], None]:
    from benchmarks import data

    data.settle(spinning=False)
    from benchmarks import training

    setup = training.load_setup(training.Size(**size), Path(folder))
    return _in_turns(lambda: training.started(setup, loss), lambda start: training.train(start, steps=setup.size.steps))


def theirs(folder: str, size: dict[str, Any], columns: int) -> Callable[[], None]:
    from benchmarks import data

    data.settle()
    from benchmarks import training

    setup = training.load_setup(training.Size(**size), Path(folder))
    texts = training.columns_of(setup, columns)
    return _in_turns(lambda: training.new_trainer(setup, texts), lambda trainer: trainer.train())


def _in_turns(ready: Callable[[], Any], run: Callable[[Any], object]) -> Callable[[], None]:
    """A function that makes ready, when called again runs with what was made, and so on; before all it runs once more,
    to warm up."""

    def turns() -> Iterator[None]:
        run(ready())
        while True:
            state = ready()
            yield
            run(state)
            yield

    return turns().__next__
