"""Progress of long work: a bar with throughput and time left on a terminal, a plain line now and then in a log."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_EVERY = 10.0  # seconds between lines in a log


@contextmanager
def progress(label: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Yield a function to call, from any thread, with the number of units done since the last call.

    `done` were done before, by a run that was killed: they count, but not for the speed.
    """
    turn = threading.Lock()
    with (_bar if sys.stderr.isatty() else _lines)(label, total, unit, done) as advance:

        def in_turn(more: int) -> None:
            with turn:
                advance(more)

        yield in_turn


@contextmanager
def _bar(label: str, total: int | None, unit: str, done: int) -> Iterator[Callable[[int], object]]:
    from tqdm import tqdm

    with tqdm(desc=label, total=total, initial=done, unit=f" {unit}", dynamic_ncols=True) as bar:
        yield bar.update


@contextmanager
def _lines(label: str, total: int | None, unit: str, done: int) -> Iterator[Callable[[int], None]]:
    began = said = time.monotonic()
    count = done
    shown = None

    def advance(more: int) -> None:
        nonlocal count, said
        count += more
        now = time.monotonic()
        if now - said >= LINE_EVERY:
            said = now
            say(now)

    def say(now: float) -> None:
        nonlocal shown
        shown = count
        speed = (count - done) / max(now - began, 1e-9)
        of = f" of {total:,}" if total else ""
        left = f", {(total - count) / speed:,.0f} s left" if total and speed and count < total else ""
        print(f"{label}: {count:,}{of} {unit}, {speed:,.1f} {unit}/s{left}", file=sys.stderr, flush=True)

    yield advance
    if shown != count:
        say(time.monotonic())
