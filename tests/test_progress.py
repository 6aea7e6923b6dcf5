"""Progress in a log, with a clock that the test turns; it decides no byte."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from eadpr.runtime import progress as module
from eadpr.runtime.progress import LINE_EVERY, progress


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def printed(capsys) -> list[str]:
    return [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]


def test_a_line_now_and_then_and_one_at_the_end(clock, capsys):
    with progress("re\x1bad", 30, "rows") as advance:
        for seconds in (LINE_EVERY / 2, LINE_EVERY, 1.0):
            clock[0] += seconds
            advance(10)
    assert printed(capsys) == [r"re\x1bad: 20 of 30 rows", r"re\x1bad: 30 of 30 rows"]


def test_threads_that_are_done_at_once_take_turns(monkeypatch, capsys):
    inside = threading.Lock()

    @contextmanager
    def lines(*_):
        def advance(_):
            assert inside.acquire(blocking=False)
            time.sleep(0.01)
            inside.release()

        yield advance

    monkeypatch.setattr(module, "_lines", lines)
    monkeypatch.setattr(module, "_bar", lines)
    with progress("read", 8, "rows") as advance, ThreadPoolExecutor(4) as pool:
        assert list(pool.map(advance, [1] * 8)) == [None] * 8


@pytest.mark.parametrize(("total", "steps", "expected"), [
    (20, [10, 10], ["read: 10 of 20 rows", "read: 20 of 20 rows"]), (None, [], ["read: 0 rows"]),
])  # fmt: skip
def test_the_last_line_is_not_printed_twice(clock, capsys, total, steps, expected):
    with progress("read", total, "rows") as advance:
        for step in steps:
            clock[0] += LINE_EVERY
            advance(step)
    assert printed(capsys) == expected


def test_what_a_killed_run_did_counts_but_not_for_the_speed(clock, capsys):
    with progress("read", 30, "rows", done=20) as advance:
        clock[0] += LINE_EVERY
        advance(5)
        clock[0] += LINE_EVERY
        advance(5)
    expected = ["read: 25 of 30 rows, 0.5 rows/s, 10 s left", "read: 30 of 30 rows, 0.5 rows/s"]
    assert capsys.readouterr().err.splitlines() == expected
