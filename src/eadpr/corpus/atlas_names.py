"""Invented names.

The name of the n-th entity of a kind is a closed form of (seed, kind, n), so that a block can mention entities of other
blocks without generating them, and no two entities share a name by accident.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

from eadpr.corpus import atlas_pools as pools

PERSONS_PER_SURNAME = 3
MOST_PER_BLOCK = 8  # names of one kind that a block needs: those of families and, for works, of films and books
_SHORT = len(pools.ONSETS) * len(pools.VOWELS) * len(pools.MIDDLES)
MOST_BLOCKS = _SHORT * min(len(pools.ENDS), len(pools.TOWN_ENDS)) * len(pools.SYLLABLES) // MOST_PER_BLOCK


@lru_cache(maxsize=64)
def _shift(seed: int, space: str, size: int) -> int:
    return zlib.crc32(f"{seed}/{space}".encode()) % size


def _scattered(seed: int, space: str, n: int, size: int) -> tuple[int, int]:
    """A permutation of 0 … size - 1 within each run of `size` numbers: (run, number)."""
    step = 1_000_003  # a prime that divides no size used here
    return n // size, (n % size * step + _shift(seed, space, size)) % size


def _syllables(seed: int, space: str, n: int, ends: tuple[str, ...]) -> str:
    run, number = _scattered(seed, space, n, _SHORT * len(ends))
    number, onset = divmod(number, len(pools.ONSETS))
    number, vowel = divmod(number, len(pools.VOWELS))
    end, middle = divmod(number, len(pools.MIDDLES))
    return pools.ONSETS[onset] + pools.VOWELS[vowel] + pools.MIDDLES[middle] + pools.SYLLABLES[run] + ends[end]


def _pick(words: tuple[str, ...], seed: int, space: str, n: int) -> str:
    return words[zlib.crc32(f"{seed}/{space}/{n}".encode()) % len(words)]


def stem(seed: int, space: str, n: int) -> str:
    return _syllables(seed, space, n, pools.ENDS)


def _stem_and(ends: tuple[str, ...], seed: int, space: str, n: int) -> str:
    return f"{stem(seed, space, n)} {_pick(ends, seed, space, n)}"


def town(seed: int, n: int) -> str:
    return _syllables(seed, "town", n, pools.TOWN_ENDS)


def person(seed: int, n: int, pronoun: str) -> str:
    """PERSONS_PER_SURNAME persons in a row share the surname and differ in the given name."""
    family, place = divmod(n, PERSONS_PER_SURNAME)
    given = pools.GIVEN[pronoun]
    start = zlib.crc32(f"{seed}/given/{family}".encode())
    return f"{given[(start + 7 * place) % len(given)]} {stem(seed, 'surname', family)}"


def company(seed: int, n: int) -> str:
    return _stem_and(pools.COMPANY_ENDS, seed, "company", n)


def product(seed: int, n: int) -> str:
    return _stem_and(pools.PRODUCT_ENDS, seed, "product", n)


def band(seed: int, n: int) -> str:
    return _stem_and(pools.BAND_ENDS, seed, "band", n)


def team(seed: int, n: int) -> str:
    return _stem_and(pools.TEAM_ENDS, seed, "team", n)


def building(seed: int, n: int) -> str:
    return _stem_and(pools.BUILDING_ENDS, seed, "building", n)


def mountain(seed: int, n: int) -> str:
    return _pick(pools.MOUNTAINS, seed, "mountain", n).format(s=stem(seed, "mountain", n))


def work(seed: int, n: int) -> str:
    """The title of a film or a book."""
    nouns = {"n": _pick(pools.NOUNS, seed, "noun", n), "n2": _pick(pools.NOUNS2, seed, "noun2", n)}
    return _pick(pools.TITLES, seed, "title", n).format(**nouns, s=stem(seed, "work", n))
