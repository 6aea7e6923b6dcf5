"""Which of the evaluated questions are read: the same for every reader and every ranking."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from eadpr.reading.config import Read


def sampled(members: Mapping[str, Sequence[str]], settings: Read) -> dict[str, list[str]]:
    """Question ids by question set, in the order given: all, or of each set the first `questions` by a hash of seed and
    id, so that fewer are among more."""
    if settings.questions is None:
        return {name: list(ids) for name, ids in members.items()}
    found = {}
    for name, ids in members.items():
        kept = frozenset(sorted(ids, key=lambda question_id: _hash(settings.seed, question_id))[: settings.questions])
        found[name] = [question_id for question_id in ids if question_id in kept]
    return found


def _hash(seed: int, question_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{question_id}".encode()).digest()
