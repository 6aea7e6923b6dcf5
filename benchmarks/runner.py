"""How two ways to do the same work are compared: first by their results, then by alternating timed repeats."""

import gc
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5
Option = TypeVar("Option")


class Different(AssertionError):
    """The two sides did not compute the same thing, so that their times say nothing."""


class Side(NamedTuple):
    """One way to do the work. What `run` does with what `ready` gives is timed, `ready` is not; `units` is how much
    work it is. `result` gives what the sides are compared by, where that is not what `run` returns."""

    run: Callable[[Any], Any]
    ready: Callable[[], Any] = lambda: None
    result: Callable[[], Any] | None = None
    units: int = 1


class Goal(NamedTuple):
    """`speed`: we are at least `bound` times as fast as the peer; `time`: we take at most `bound` times its time."""

    kind: Literal["speed", "time"]
    bound: float


class Comparison(NamedTuple):
    """`same` takes the results of both sides, ours first, returns in words how alike they are and raises Different."""

    path: str
    peer: str
    goal: Goal
    unit: str
    ours: Side
    theirs: Side
    same: Callable[[Any, Any], str]


class Row(NamedTuple):
    """`ratios` of the repeats, as the goal's kind says; seconds per repeat are medians."""

    path: str
    peer: str
    kind: str
    bound: float
    unit: str
    units: int
    our_seconds: float
    peer_seconds: float
    ratios: list[float]
    alike: str

    @property
    def met(self) -> bool:
        median = statistics.median(self.ratios)
        return median >= self.bound if self.kind == "speed" else median <= self.bound


def check(comparison: Comparison) -> str:
    return comparison.same(*(_result(side) for side in (comparison.ours, comparison.theirs)))


def measure(comparison: Comparison, repeats: int = REPEATS) -> Row:
    """Both sides once, to compare results and to warm up, then `repeats` pairs in which they take turns to be first."""
    began = time.monotonic()
    alike = check(comparison)
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for number in range(repeats):
        for name in sorted(seconds, reverse=bool(number % 2)):
            seconds[name].append(timed(getattr(comparison, name)))
    ours, theirs = (np.array(seconds[name]) / getattr(comparison, name).units for name in ("ours", "theirs"))
    ratios = theirs / ours if comparison.goal.kind == "speed" else ours / theirs
    spent = time.monotonic() - began
    print(f"{comparison.path}: {statistics.median(ratios):.2f}, took {spent:.0f} s", file=sys.stderr, flush=True)
    return Row(
        comparison.path,
        comparison.peer,
        *comparison.goal,
        comparison.unit,
        comparison.ours.units,
        statistics.median(seconds["ours"]),
        statistics.median(seconds["theirs"]),
        ratios.tolist(),
        alike,
    )


def timed(side: Side) -> float:
    prepared = side.ready()
    gc.collect()
    began = time.perf_counter()
    side.run(prepared)
    return time.perf_counter() - began


def fastest(options: Iterable[Option], run: Callable[[Option], object]) -> Option:
    """The option with which `run` takes least time, after one run to warm up: a peer is measured at its best."""
    options = list(options)
    run(options[0])
    return min(options, key=lambda option: timed(Side(lambda _: run(option))))


def _result(side: Side) -> Any:
    return side.result() if side.result else side.run(side.ready())


def within(tolerance: float) -> Callable[[Any, Any], str]:
    """Return a check that two arrays differ by at most so much anywhere."""

    def same(ours: np.ndarray, theirs: np.ndarray) -> str:
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if ours.shape != theirs.shape or not ours.size:
            raise Different(f"results have the shapes {ours.shape} and {theirs.shape}, expected the same, not empty")
        apart = float(np.abs(ours - theirs).max())
        if not apart <= tolerance:
            raise Different(f"results differ by up to {apart:.2g}, allowed are {tolerance:.0e}")
        return f"results differ by at most {apart:.0e}"

    return same


def equal(what: str) -> Callable[[Any, Any], str]:
    def same(ours: Any, theirs: Any) -> str:
        if ours != theirs:
            raise Different(f"{what} differ: ours {str(ours)[:300]}, theirs {str(theirs)[:300]}")
        return f"same {what}"

    return same


class Worker:
    """Work in a process of its own, `function(**arguments)` of `module` once and then what it returns at every call."""

    def __init__(self, module: str, function: str, **arguments: object) -> None:
        call = {"module": module, "function": function, "arguments": arguments}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", json.dumps(call, default=os.fspath)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self) -> Any:
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise MemoryError(f"the worker ended with {self._process.wait()}; what it wrote stands above")
        return json.loads(answer)

    @property
    def resident(self) -> int:
        """Bytes at most so far, pages of mapped files among them."""
        return memory("VmHWM", self._process.pid)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def memory(field: str, process: int | str = "self") -> int:
    """Bytes, by the fields of /proc/PID/status."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def limit_memory(more: int) -> None:
    """This process may take so many bytes more, and not one beyond them: RLIMIT_DATA, `ulimit -d`.

    It counts all memory but files mapped read-only, whose pages the kernel takes back when it needs them; RLIMIT_AS
    would count those too.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (memory("VmData") + more,) * 2)


def run(name: str, folder: Path, *, quick: bool, repeats: int = REPEATS) -> list[Row]:
    """The rows of one benchmark, measured in this process."""
    module = importlib.import_module(f"benchmarks.{name}")
    comparisons = module.comparisons(module.QUICK if quick else module.FULL, folder)
    return [measure(comparison, repeats) for comparison in comparisons]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown. A ratio is the median of the repeats, with the least and the highest."""
    lines = [
        "| path | peer | work | ours | peer's | ratio (least – highest) | goal | met | results |",
        "|---|---|---|--:|--:|--:|--:|---|---|",
    ]
    for row in rows:
        sign, what = ("≥", "as fast") if row.kind == "speed" else ("≤", "its time")
        ratio = f"{statistics.median(row.ratios):.2f} ({min(row.ratios):.2f} – {max(row.ratios):.2f})"
        lines.append(
            f"| {row.path} | {row.peer} | {row.units:,} {row.unit} | {row.our_seconds:.3g} s | {row.peer_seconds:.3g} s"
            f" | {ratio} × {what} | {sign} {row.bound:g} | {'yes' if row.met else '**no**'} | {row.alike} |"
        )
    return "\n".join(lines) + "\n"
