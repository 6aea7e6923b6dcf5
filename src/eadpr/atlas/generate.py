"""The embedded collection: a generated encyclopedia of fictional people, places, companies, works and teams.

It consists of blocks of 60 entities. A block depends on the seed and its number only, so a larger atlas begins with the
smaller one, and one block at a time is in memory. A block belongs to training, testing or the annotator as a whole, so
no entity is asked about in two of them. The generator knows the truth: gold sentences, seen and unseen relations,
two-hop questions with their hops. It is frozen, because arms are compared on its output (tests hold a hash of it).
"""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import Field

from eadpr.atlas.facts import world
from eadpr.atlas.pages import write_page
from eadpr.atlas.questions import AtlasQuestion, write_questions
from eadpr.atlas.texts import PASSAGES, QUESTIONS, TrexRelation
from eadpr.runtime.section import Section
from eadpr.storage.records import Passage

MOST = 100_000_000  # passages; the invented words last for more


class Atlas(Section):
    seed: int = Field(ge=0)
    passages: int = Field(ge=1, le=MOST)
    raising: bool
    unseen: list[TrexRelation] = Field(max_length=len(QUESTIONS) - 1)  # one at least is left to train on


class Block(NamedTuple):
    passages: list[Passage]
    questions: list[AtlasQuestion]


def size(settings: Atlas) -> int:
    """Return the number of passages: `settings.passages` rounded up to whole blocks."""
    return -(-settings.passages // PASSAGES) * PASSAGES


def generate(settings: Atlas) -> Iterator[Block]:
    for number in range(size(settings) // PASSAGES):
        entities = world(settings.seed, number)
        pages = [write_page(entity, entities, settings.seed, raising=settings.raising) for entity in entities]
        gold = [page.gold for page in pages]
        questions = write_questions(entities, gold, seed=settings.seed, block=number, unseen=frozenset(settings.unseen))
        yield Block([passage for page in pages for passage in page.passages], questions)
