"""Files and settings with one thing changed: each is read right, or refused in a line that names the file.

`python -m benchmarks.faults.inputs SEED NUMBER` repeats one, and leaves its files in a folder that it names.
"""

import json
import os
import random
import re
import resource
import selectors
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.faults.counts import Count, Outcome, Tally
from benchmarks.faults.formats import FORMATS, Format
from benchmarks.faults.mutations import changed
from benchmarks.faults.settings import SETTINGS
from eadpr.settings.command import LONGEST, USER_ERRORS, format_error

FILES, OF_SETTINGS = 8_500, 2_000  # changed at share 1
SECONDS, HANG = 10, 60  # of the processor for an input of some kB, and of the clock
LARGEST, MEMORY = 1 << 28, 2 << 30  # bytes more for such an input, and of a process
WORKERS, AT_ONCE = 2, 250  # processes, and how many changes one of them sees


class Ended(NamedTuple):
    number: int
    outcome: Outcome
    note: str


def run(seed: int, folder: Path, share: float) -> list[Count]:
    of_settings = (-1 - number for number in range(round(OF_SETTINGS * share)))  # below 0
    numbers = [*range(round(FILES * share)), *of_settings]
    tallies = {file_format.name: Tally(f"{file_format.name}, changed") for file_format in (*FORMATS, *SETTINGS)}
    for ended in all_of(seed, numbers, folder):
        note = f"{ended.note} (python -m benchmarks.faults.inputs {seed} {ended.number})"
        tallies[format_of(ended.number).name].add(ended.outcome, note)
    return [tally.count() for tally in tallies.values()]


def format_of(number: int) -> Format:
    return SETTINGS[number % len(SETTINGS)] if number < 0 else FORMATS[number % len(FORMATS)]


def attempt(seed: int, number: int, folder: Path, file_format: Format | None = None) -> Ended:
    """Change a file, read it, and judge what came of it."""
    rng, file_format = random.Random(f"{seed} {number}"), file_format or format_of(number)
    shutil.rmtree(folder, ignore_errors=True)
    files, notes = dict(file_format.files), []
    for _ in range(rng.choice((1, 1, 1, 2))):  # two of one file, or one of each
        name = rng.choice(file_format.changed or tuple(file_format.files))
        change, files[name] = changed(rng, name, files[name])
        notes.append(f"{name}, {change}")
    for path, data in files.items():
        (folder / "given" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "given" / path).write_bytes(data)
    began, bytes_before = time.process_time(), most_memory(anew=True)
    outcome, note = judged(file_format, folder / "given", name)
    took, more = time.process_time() - began, most_memory() - bytes_before
    if took > SECONDS or more > LARGEST:
        outcome, note = "wrong", f"{took:.0f} s, {more >> 20} MiB"
    return Ended(number, outcome, f"{file_format.name}, {'; '.join(notes)}: {note}"[:700])


def most_memory(*, anew: bool = False) -> int:
    """The most bytes that this process has held, counted from now on with `anew`."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10


def judged(file_format: Format, folder: Path, name: str) -> tuple[Outcome, str]:
    try:
        reading = file_format.read(folder)
    except MemoryError as error:
        return "wrong", f"memory: {error}"
    except USER_ERRORS as error:
        line = format_error(error)
        clear = is_clear(line, file_format, name, folder)
        return ("clear" if clear else "unclear"), f"{type(error).__name__}: {line!r}"
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {str(error)[:300]!r}"
    try:
        plainly = file_format.plainly(folder)
    except Exception as error:
        return "wrong", f"accepted, though {type(error).__name__}: {str(error)[:200]!r}"
    if file_format.same(reading, plainly):
        return "right", ""
    return "wrong", f"read {json.dumps(reading, default=str)[:300]}, expected {json.dumps(plainly, default=str)[:300]}"


def is_clear(message: str, file_format: Format, name: str, folder: Path) -> bool:
    """One short line that a terminal shows as it is and that names a file of the user's."""
    lines = message.split("\n") if file_format in SETTINGS else [message]  # a line for every wrong key
    names = {f"{folder}, made into "} | {
        part for path in (name, *file_format.files) for part in (Path(path).name, f"/{Path(path).parts[0]}")
    }
    return all(len(line) <= LONGEST and line.isprintable() and any(part in line for part in names) for line in lines)


def all_of(seed: int, numbers: Sequence[int], folder: Path) -> Iterator[Ended]:
    """Each in one of a few forked processes, whose memory is bounded. One that dies or says nothing for too long is
    followed by another, and the change it was at is counted against it."""
    batches = [list(numbers[start : start + AT_ONCE]) for start in range(0, len(numbers), AT_ONCE)]
    with selectors.DefaultSelector() as waiting:
        while batches or waiting.get_map():
            while batches and len(waiting.get_map()) < WORKERS:
                worker = _Worker(seed, batches.pop(0), folder / f"{time.monotonic_ns()}")
                waiting.register(worker.replies, selectors.EVENT_READ, worker)
            ready = {key.data for key, _ in waiting.select(timeout=1)}
            for worker in [key.data for key in waiting.get_map().values()]:
                ended = worker.line() if worker in ready else worker.overdue()
                if ended is not None:
                    yield ended
                if worker.over:
                    waiting.unregister(worker.replies)
                    if rest := worker.end():
                        batches.insert(0, rest)


class _Worker:
    def __init__(self, seed: int, numbers: list[int], folder: Path) -> None:
        self.over, self._remaining, self._folder, self._since = False, numbers, folder, time.monotonic()
        reading, writing = os.pipe()
        self.process = os.fork()
        if not self.process:
            os.close(reading)
            _work(seed, numbers, folder, writing)
        os.close(writing)
        self.replies = os.fdopen(reading, "rb", buffering=0)

    def line(self) -> Ended | None:
        """Return the result of a change, or that the process died at one."""
        if reply := self.replies.readline():
            self._since, _ = time.monotonic(), self._remaining.pop(0)
            return Ended(*json.loads(reply))
        self.over = True
        return self._against("traceback", "the process died") if self._remaining else None

    def overdue(self) -> Ended | None:
        if time.monotonic() - self._since < HANG:
            return None
        self.over = True
        os.kill(self.process, 9)
        return self._against("wrong", f"more than {HANG} s")

    def _against(self, outcome: Outcome, note: str) -> Ended:
        number = self._remaining.pop(0)
        return Ended(number, outcome, f"{format_of(number).name}: {note}")

    def end(self) -> list[int]:
        """The changes that are left."""
        os.waitpid(self.process, 0)
        self.replies.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return self._remaining


def _work(seed: int, numbers: list[int], folder: Path, writing: int) -> None:
    stderr = os.fdopen(os.dup(2), "w")
    try:
        settle(folder)
        for number in numbers:
            os.write(writing, json.dumps(attempt(seed, number, folder / "tried")).encode() + b"\n")
    except BaseException:
        traceback.print_exc(file=stderr)
        stderr.flush()
    finally:
        os._exit(0)


def settle(folder: Path) -> None:
    """This process: nothing shown, memory bounded, no waiting for the disk, since nothing here is to last."""
    folder.mkdir(parents=True)
    os.environ["EADPR_CACHE"] = str(folder / "cache")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.fsync = lambda _: None
    os.chdir(folder)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


if __name__ == "__main__":
    seed_, number_ = map(int, sys.argv[1:])
    folder_ = Path(tempfile.mkdtemp(prefix="eadpr-input-"))
    os.environ["EADPR_CACHE"] = str(folder_ / "cache")
    print(*attempt(seed_, number_, folder_ / "tried"), f"the files are in {folder_ / 'tried/given'}", sep="\n")
