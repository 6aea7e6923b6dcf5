"""Draws for a pair that nothing but a seed, the pair and a number decide, from what is about as long as something."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from eadpr.supervision.pairs import Pair

NEAREST = 40  # at least so many are drawn from, where there are as many
Item = TypeVar("Item")


def draw(seed: int, pair: Pair, number: int) -> int:
    """A large integer, the same in every process."""
    key = f"{seed}\0{pair.question.id}\0{pair.passage.id}\0{number}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest())


def alike(length: int, other: int) -> bool:
    """Whether neither is more than twice the other."""
    return length <= 2 * other and other <= 2 * length


def from_drawn(found: Sequence[Item], drawn: int) -> Iterator[Item]:
    """All of them once, from a drawn one on and round."""
    for i in range(len(found)):
        yield found[(drawn + i) % len(found)]


class ByLength(Generic[Item]):
    """Items in the order of their lengths; those of one length in the order given."""

    def __init__(self, items: Iterable[Item], length: Callable[[Item], int]) -> None:
        self._items = sorted(items, key=length)
        self._lengths = [length(item) for item in self._items]

    def near(self, length: int, drawn: int) -> Iterator[Item]:
        """Those nearest in length, at least NEAREST, from a drawn one on: all that are as near as the farthest of
        them. All there are where there are fewer."""
        furthest = max(length, *self._lengths[-1:], 0)
        apart = bisect_left(range(furthest), NEAREST, key=lambda apart: len(self._within(length, apart)))
        places = self._within(length, apart)
        return (self._items[i] for i in from_drawn(places, drawn))

    def _within(self, length: int, apart: int) -> range:
        """The places of those whose length is at most so far from this one."""
        return range(bisect_left(self._lengths, length - apart), bisect_right(self._lengths, length + apart))
