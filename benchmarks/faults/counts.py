"""How what was tried ended, counted: each kind is a row of the table in docs/faults.md."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

Outcome = Literal["right", "clear", "unclear", "traceback", "wrong"]
OUTCOMES: tuple[Outcome, ...] = ("right", "clear", "unclear", "traceback", "wrong")
LONGEST = 600  # characters of an error that somebody reads
TRACEBACK = "Traceback (most recent call last)"


class Count(NamedTuple):
    """`right`: the bytes of an undisturbed run. `clear`: refused by a message that names what it is about. `wrong`:
    something else came out and nobody said so, or something was left behind. `notes` name each that was neither right
    nor clear, with what repeats it."""

    kind: str
    tried: int
    right: int
    clear: int
    unclear: int
    traceback: int
    wrong: int
    notes: tuple[str, ...]


class Tally:
    """A `Count` in the making."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._ended: Counter[str] = Counter()
        self._notes: list[str] = []

    def add(self, outcome: Outcome, note: str) -> None:
        """`note` is kept where the outcome is neither right nor clear; of clear ones nothing needs to be repeated."""
        self._ended[outcome] += 1
        if outcome not in ("right", "clear"):
            self._notes.append(f"{outcome}: {note}")

    def count(self) -> Count:
        ended = [self._ended[outcome] for outcome in OUTCOMES]
        return Count(self.kind, sum(ended), *ended, tuple(self._notes))


def refused(stderr: str, names: Sequence[str]) -> Outcome:
    """Judge the error of a command by its stderr: `clear` is one `error:` line which has one of `names` in it, such as
    the file."""
    if TRACEBACK in stderr:
        return "traceback"
    errors = re.findall(r"(?:error|ERROR|Error): (.*)", stderr)
    clear = errors and len(errors[-1]) <= LONGEST and any(name in errors[-1] for name in names)
    return "clear" if clear else "unclear"
