"""How data stands in the page: JSON, compressed, in base64, in blocks that are unpacked when they are needed.

Compression sees 32 kB at a time, and prose repeats its words over all blocks. So the frequent words of all passages get
codes of two or three characters first, which begin with one that no JSON holds: data.js puts the words back.
"""

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from typing import Any, NamedTuple

SHORT, LONG = range(0x01, 0x1D), range(0x1D, 0x20)  # first characters of codes of two and of three
NEXT = range(0x20, 0x7F)
LONG_ENOUGH, OFTEN = 3, 4  # a word with a code has as many letters, and occurs as often
FIRST_SIGN, SURROGATES, AFTER = 0x23, 0xD800, 0x800  # characters that are no text by themselves are left out
_TOKEN = re.compile(r" ?\w+")


class PackedPage(NamedTuple):
    """What stands in the page: the columns of all questions, the words with codes, blocks of questions in full, blocks
    of passages."""

    columns: bytes
    words: bytes
    details: list[bytes]
    texts: list[bytes]


def plain(value: Any) -> str:
    """JSON; NaN is refused, since no browser reads it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def pack(value: Any, shorten: Callable[[str], str] = str) -> bytes:
    return base64.b64encode(zlib.compress(shorten(plain(value)).encode(), 9))


def in_blocks(values: Iterable[Any], size: int, shorten: Callable[[str], str] = str) -> Iterator[bytes]:
    rest = iter(values)
    while block := list(islice(rest, size)):
        yield pack(block, shorten)


def signs(numbers: Iterable[int]) -> str:
    """A character for each number, none of which is below 0; data.js reads them (`numbersOf`)."""
    codes = (FIRST_SIGN + number for number in numbers)
    return "".join(chr(code if code < SURROGATES else code + AFTER) for code in codes)


def folded(numbers: Iterable[int]) -> Iterator[int]:
    """0, -1, 1, -2, 2 ... as 0, 1, 2, 3, 4 ..."""
    return (2 * number if number >= 0 else -2 * number - 1 for number in numbers)


def frequent(texts: Iterable[Any]) -> list[str]:
    """Words to give codes, in the order of the codes."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_TOKEN.findall(plain(text)))
    known = [word for word, count in counts.most_common() if count >= OFTEN and len(word) >= LONG_ENOUGH]
    return known[: len(SHORT) * len(NEXT) + len(LONG) * len(NEXT) ** 2]


def shortener(words: Iterable[str]) -> Callable[[str], str]:
    signs = [*product(SHORT, NEXT), *product(LONG, NEXT, NEXT)]
    codes = {word: "".join(map(chr, code)) for word, code in zip(words, signs, strict=False)}
    return lambda text: _TOKEN.sub(lambda match: codes.get(match[0], match[0]), text)
