"""Progress of long work: a bar with speed and remaining time on a terminal, a plain line every few seconds in a log."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eadpr.runtime.terminal import printable

LINE_EVERY = 10.0  # seconds between lines in a log
LINES = "EADPR_LINES"  # if set, there are no bars: several processes write


@contextmanager
def progress(label: str, total: int | None, unit: str, *, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of units done since its last call, from any thread; `done` units come from
    a killed run and do not count for the speed."""
    lock, label = threading.Lock(), printable(label)
    with (_bar if sys.stderr.isatty() and LINES not in os.environ else _lines)(label, total, unit, done) as advance:

        def advance_locked(more: int) -> None:
            with lock:
                advance(more)

        yield advance_locked


@contextmanager
def _bar(label: str, total: int | None, unit: str, done: int) -> Iterator[Callable[[int], object]]:
    from tqdm import tqdm

    with tqdm(desc=label, total=total, initial=done, unit=f" {unit}", dynamic_ncols=True) as bar:
        yield bar.update


@contextmanager
def _lines(label: str, total: int | None, unit: str, done: int) -> Iterator[Callable[[int], None]]:
    start = last_line = time.monotonic()
    count, printed = done, None

    def advance(more: int, *, interval: float = LINE_EVERY) -> None:
        nonlocal count, last_line, printed
        count += more
        now = time.monotonic()
        if count == printed or now - last_line < interval:
            return
        last_line, printed = now, count
        speed = (count - done) / max(now - start, 1e-9)
        goal = f" of {total:,}" if total else ""
        remaining = f", {(total - count) / speed:,.0f} s left" if total and speed and count < total else ""
        print(f"{label}: {count:,}{goal} {unit}, {speed:,.1f} {unit}/s{remaining}", file=sys.stderr, flush=True)

    yield advance
    advance(0, interval=0.0)
