"""Draws for a pair, decided by nothing but a seed, the pair and a number, from items of about the same length."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from eadpr.supervision.pairs import Pair

NEAREST = 40  # the fewest items to draw from, where there are as many
Item = TypeVar("Item")


def draw(seed: int, pair: Pair, number: int) -> int:
    """Return a large integer, the same in every process."""
    key = f"{seed}\0{pair.question.id}\0{pair.passage.id}\0{number}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest())


def similar(first: int, second: int) -> bool:
    """Return true if neither length is more than twice the other."""
    return first <= 2 * second and second <= 2 * first


class ByLength(Generic[Item]):
    """Items sorted by length; those of one length stay in order."""

    def __init__(self, items: Iterable[Item], length: Callable[[Item], int]) -> None:
        self._items = sorted(items, key=length)
        self._lengths = [length(item) for item in self._items]

    def nearest(self, length: int, start: int) -> Iterator[Item]:
        """Yield the NEAREST items nearest in length, and all others as near as the last one, from `start` on."""
        furthest = max(length, *self._lengths[-1:], 0)
        distance = bisect_left(range(furthest), NEAREST, key=lambda distance: len(self._within(length, distance)))
        places = self._within(length, distance)
        return (self._items[places[(start + i) % len(places)]] for i in range(len(places)))

    def _within(self, length: int, distance: int) -> range:
        """Return the places of the items with a length at most `distance` from `length`."""
        return range(bisect_left(self._lengths, length - distance), bisect_right(self._lengths, length + distance))
