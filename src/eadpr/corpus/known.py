"""Which passages a corpus holds, by digests of 8 bytes each: 21 million take 0.34 GB, at most 0.9 GB while sorted."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

import numpy as np

from eadpr.corpus.given import GivenPassage, shown


def digest(*parts: str) -> int:
    """A 64-bit integer, the same in every process."""
    return int.from_bytes(hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest(), "little")


class Known:
    """Passages seen, then looked up by id.

    Digests of different ids may be equal (odds 1e-5 at 21 M), therefore `suspects`. Passages may be added one by one
    after `freeze`, at the cost of a dictionary entry each.
    """

    def __init__(self, *, titles: bool) -> None:
        self._ids, self._contents = array("Q"), array("Q")
        self._titles = array("Q") if titles else None
        self._later: dict[int, tuple[int, int]] = {}

    def add(self, passage_id: str, title: str, text: str) -> None:
        self._ids.append(digest(passage_id))
        self._contents.append(digest(title, text))
        if self._titles is not None:
            self._titles.append(digest(title or passage_id.partition("#")[0]))

    def freeze(self) -> None:
        ids = np.frombuffer(self._ids, np.uint64)
        order = np.argsort(ids, kind="stable")
        self._sorted = ids[order]
        self._contents_sorted = np.frombuffer(self._contents, np.uint64)[order]
        self._titles_sorted = None if self._titles is None else np.frombuffer(self._titles, np.uint64)[order]
        del ids
        self._ids = self._contents = self._titles = None

    def suspects(self) -> set[int]:
        """Digests that stand more than once."""
        return set(self._sorted[1:][self._sorted[1:] == self._sorted[:-1]].tolist())

    def add_later(self, passage_id: str, title: str, text: str) -> None:
        self._later[digest(passage_id)] = digest(title, text), digest(title or passage_id)

    def content(self, passage_id: str) -> int | None:
        """Digest of the passage's title and text; None for an unknown id."""
        return self._value(passage_id, self._contents_sorted, 0)

    def title(self, passage_id: str) -> int | None:
        """Digest of its title, or of its document's id where it has none."""
        return self._value(passage_id, self._titles_sorted, 1)

    def _value(self, passage_id: str, values: np.ndarray, which: int) -> int | None:
        sought = digest(passage_id)
        if sought in self._later:
            return self._later[sought][which]
        at = int(np.searchsorted(self._sorted, np.uint64(sought)))
        found = at < len(self._sorted) and int(self._sorted[at]) == sought
        return int(values[at]) if found else None


def refuse_duplicates(suspects: set[int], passages: Iterable[GivenPassage]) -> None:
    """Read the passages again and name the first id that really stands twice."""
    first: dict[str, str] = {}
    for where, passage in passages:
        if digest(passage.id) not in suspects:
            continue
        if passage.id in first:
            raise ValueError(
                f"{where}: passage id {shown(passage.id)} stands twice (first in {first[passage.id]});"
                " ids must be unique"
            )
        first[passage.id] = where
