"""Invented names: one of STEMS invented words with one of the kind's forms around it.

The name of the n-th entity of a kind is a closed form of (seed, kind, n), so that a block can mention entities of other
blocks without generating them, and no two entities share a name by accident. When all forms of STEMS words are used up,
the next STEMS words follow. Words are few on purpose: names of entities never asked about in training are then new
combinations of words that an encoder has met, as names mostly are in real collections.
"""

from __future__ import annotations

import zlib
from functools import cache
from itertools import count
from math import gcd

from eadpr.atlas import pools as pools

STEMS = 80


def _forms(kind: str) -> tuple[str, ...]:
    """{s} is the place of the invented word."""
    if kind == "person":
        return tuple(f"{given} {{s}}" for names in pools.GIVEN.values() for given in names)
    if kind == "work":
        filled = [title.replace("{n2}", noun) for title in pools.TITLES for noun in pools.PERSONAGES]
        return tuple(dict.fromkeys(title.replace("{n}", noun) for title in filled for noun in pools.NOUNS))
    return pools.FORMS[kind]


FORMS = {kind: _forms(kind) for kind in ("person", "work", *pools.FORMS)}


@cache
def _steps(seed: int, kind: str, size: int) -> tuple[int, int]:
    """(step, shift) with which number * step + shift, modulo size, scatters 0 … size - 1."""
    step = next(step for step in count(int(size * 0.618)) if gcd(step, size) == 1)
    return step, zlib.crc32(f"{seed}/{kind}".encode())


def _scattered(seed: int, kind: str, n: int, size: int) -> tuple[int, int]:
    """The run of `size` numbers that n is in, and its number in it after a permutation."""
    step, shift = _steps(seed, kind, size)
    run, number = divmod(n, size)
    return run, (number * step + shift) % size


def stem(seed: int, n: int) -> str:
    """The n-th invented word; no two are the same."""
    simple = len(pools.ONSETS) * len(pools.VOWELS) * len(pools.MIDDLES) * len(pools.ENDS)
    run, number = _scattered(seed, "stem", n, simple)
    number, onset = divmod(number, len(pools.ONSETS))
    number, vowel = divmod(number, len(pools.VOWELS))
    end, middle = divmod(number, len(pools.MIDDLES))
    return pools.ONSETS[onset] + pools.VOWELS[vowel] + pools.MIDDLES[middle] + pools.SYLLABLES[run] + pools.ENDS[end]


def name(seed: int, kind: str, n: int) -> str:
    """`kind` is one of FORMS."""
    forms = FORMS[kind]
    run, number = _scattered(seed, kind, n, STEMS * len(forms))
    form, word = divmod(number, STEMS)
    return forms[form].format(s=stem(seed, run * STEMS + word))


def pronoun(person: str) -> str:
    return "she" if person.split()[0] in pools.GIVEN["she"] else "he"
