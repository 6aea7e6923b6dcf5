"""Things in the order drawn, parted into splits of given sizes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate


def splits(count: int, shares: Mapping[str, int]) -> list[str]:
    """The split of each of `count` things; `shares` are per cent, borders are rounded to the nearest, half up."""
    assert sum(shares.values()) == 100, shares
    found: list[str] = []
    for name, share in zip(shares, accumulate(shares.values()), strict=True):
        found += [name] * ((count * share + 50) // 100 - len(found))
    return found
