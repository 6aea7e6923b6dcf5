"""Settings and the table of two hops; no heavy imports."""

from typing import NamedTuple

from pydantic import Field

from eadpr.runtime.section import Section


class TwoHop(Section):
    """`shared` replaces encoder.shared; `query_tokens` is the length of hop 2's query."""

    shared: bool
    query_tokens: int = Field(ge=8)


class Beam(Section):
    """`width`: passages kept at hop 1, and at hop 2 for each of them; `paths`: kept per question."""

    width: int = Field(ge=1)
    paths: int = Field(ge=1)


class RankedPath(NamedTuple):
    """One row of a ranking of paths: passages in the order of the hops; `score` is the sum of `hop_scores`."""

    question_id: str
    rank: int
    passage_ids: list[str]
    hop_scores: list[float]
    score: float
