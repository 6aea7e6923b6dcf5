"""The embedded collection: a generated encyclopedia of fictional people, places, companies, works and teams.

It is made in blocks of 60 entities. A block depends on (seed, its number) only, so a larger atlas begins with the
smaller one, and memory is that of one block. Every block belongs wholly to training, testing or the annotator, so no
entity is asked about in two of them. The generator knows its truth: gold sentences, seen and unseen relations, two-hop
questions with their hops. It is frozen: what it writes is what arms are compared on (tests hold a hash of it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import Field, field_validator

from eadpr.atlas.facts import Entity, world
from eadpr.atlas.pages import Page, page
from eadpr.atlas.questions import AtlasQuestion, ask
from eadpr.atlas.texts import PASSAGES
from eadpr.config import Section
from eadpr.records import Passage
from eadpr.trex import QUESTIONS

MOST = 100_000_000  # passages; the invented words last for more


class Atlas(Section):
    seed: int = Field(ge=0)
    passages: int = Field(ge=1, le=MOST)
    raising: bool
    unseen: list[str]

    @field_validator("unseen")
    @classmethod
    def _of_trex(cls, unseen: list[str]) -> list[str]:
        for relation in unseen:
            if relation not in QUESTIONS:
                raise ValueError(f"{relation!r} is not a T-REx relation; known are {', '.join(QUESTIONS)}")
        if set(unseen) == set(QUESTIONS):
            raise ValueError("all T-REx relations are unseen; leave at least one to train on")
        return unseen


class Block(NamedTuple):
    passages: list[Passage]
    questions: list[AtlasQuestion]


class Generated:
    """Every call of `blocks`, `passages` or `questions` generates anew and holds one block."""

    def __init__(self, settings: Atlas) -> None:
        self._settings = settings
        self._blocks = -(-settings.passages // PASSAGES)

    def __len__(self) -> int:
        """Number of passages: those asked for, rounded up to whole blocks."""
        return self._blocks * PASSAGES

    def blocks(self) -> Iterator[Block]:
        for number in range(self._blocks):
            yield block(self._settings, number)

    def passages(self) -> Iterator[Passage]:
        for number in range(self._blocks):
            _, pages = _pages(self._settings, number)
            yield from _passages(pages)

    def questions(self) -> Iterator[AtlasQuestion]:
        for made in self.blocks():
            yield from made.questions


def generate(settings: Atlas) -> Generated:
    return Generated(settings)


def block(settings: Atlas, number: int) -> Block:
    entities, pages = _pages(settings, number)
    questions = ask(
        entities, [page.gold for page in pages], seed=settings.seed, block=number, unseen=frozenset(settings.unseen)
    )
    return Block(_passages(pages), questions)


def _pages(settings: Atlas, number: int) -> tuple[list[Entity], list[Page]]:
    entities = world(settings.seed, number)
    return entities, [page(entity, entities, settings.seed, raising=settings.raising) for entity in entities]


def _passages(pages: list[Page]) -> list[Passage]:
    return [passage for page in pages for passage in page.passages]
