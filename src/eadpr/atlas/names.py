"""Invented names: one of STEMS invented words in one of the kind's forms.

The name of the n-th entity of a kind is a closed form of (seed, kind, n), so that a block can mention entities of other
blocks without generating them, and no two entities share a name by accident. When all forms of STEMS words are used up,
the next STEMS words follow. Words are few on purpose: names of entities that training never asks about are then new
combinations of words that an encoder has met, as names mostly are in real collections.
"""

import zlib
from itertools import count
from math import gcd

from eadpr.atlas.texts import POOLS

STEMS = 80


def _forms(kind: str) -> tuple[str, ...]:
    """Return a kind's forms, with {s} for the invented word."""
    if kind == "person":
        return tuple(f"{first_name} {{s}}" for names in POOLS["given"].values() for first_name in names)
    if kind == "work":
        filled = [title.replace("{n2}", noun) for title in POOLS["titles"] for noun in POOLS["personages"]]
        return tuple(dict.fromkeys(title.replace("{n}", noun) for title in filled for noun in POOLS["nouns"]))
    return POOLS["forms"][kind]


FORMS = {kind: _forms(kind) for kind in ("person", "work", *POOLS["forms"])}


def _scatter(seed: int, kind: str, n: int, size: int) -> tuple[int, int]:
    """Return the run of `size` numbers that n falls into, and n's place in the run after a permutation."""
    step = next(step for step in count(int(size * 0.618)) if gcd(step, size) == 1)
    run, number = divmod(n, size)
    return run, (number * step + zlib.crc32(f"{seed}/{kind}".encode())) % size


def stem(seed: int, n: int) -> str:
    """Return the n-th invented word; all differ."""
    onsets, vowels, middles, ends = (POOLS[part] for part in ("onsets", "vowels", "middles", "ends"))
    run, number = _scatter(seed, "stem", n, len(onsets) * len(vowels) * len(middles) * len(ends))
    number, onset = divmod(number, len(onsets))
    number, vowel = divmod(number, len(vowels))
    end, middle = divmod(number, len(middles))
    return onsets[onset] + vowels[vowel] + middles[middle] + POOLS["syllables"][run] + ends[end]


def name(seed: int, kind: str, n: int) -> str:
    forms = FORMS[kind]
    run, number = _scatter(seed, kind, n, STEMS * len(forms))
    form, word = divmod(number, STEMS)
    return forms[form].format(s=stem(seed, run * STEMS + word))


def pronoun(person: str) -> str:
    return "she" if person.split()[0] in POOLS["given"]["she"] else "he"
