"""The entities of a block and their facts.

Answers come from small pools (countries, genres, …) and from other entities: mostly of the same block, which bridge
questions need, partly of earlier blocks, by name only. No two facts of an entity have the same answer. A few entities
share their name with one of another kind; a relation holds for at most one of the two, so that a question has one right
answer. An unknown fact may be raised and is never stated.
"""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from eadpr.atlas import names
from eadpr.atlas.texts import ENTITIES, KINDS, PERSONS, POOLS, RELATIONS

KNOWN = 0.9  # share of an entity's relations with a known fact
ELSEWHERE = 0.3  # share of references that go to another block
NEAR = 40  # blocks that a reference may look back
NAMED_AS = {kind: "person" if kind in PERSONS else kind for kind in KINDS} | {"film": "work", "book": "work"}
# The kind of name of each place in a block; places with the same kind of name are neighbours.
NAME_KINDS = [NAMED_AS[kind] for kind, about in KINDS.items() for _ in range(about.count)]
# Answers are entities of these kinds, years, numbers, or words of another pool.
REFERENCES, YEARS, NUMBERS = (POOLS[name] for name in ("references", "years", "numbers"))


class Fact(NamedTuple):
    """An answer; comparisons compare `number`, and `target` is the place in the block of the entity that it names."""

    answer: str
    number: int | None = None
    target: int | None = None


@dataclass
class Entity:
    place: int  # in the block
    id: str
    kind: str
    name: str
    noun: str
    pronoun: str
    facts: dict[str, Fact] = field(default_factory=dict)


class _Draw(NamedTuple):
    """The state of drawing an answer: the block's entities by kind and the entity in question with its facts so far."""

    rng: Random
    seed: int
    block: int
    by_kind: dict[str, list[Entity]]
    entity: Entity


def world(seed: int, block: int) -> list[Entity]:
    """Generate the ENTITIES entities of a block with their facts."""
    rng = Random(f"atlas/{seed}/{block}/facts")
    entities: list[Entity] = []
    for kind, about in KINDS.items():
        for place in range(len(entities), len(entities) + about.count):
            name = _name(seed, kind, block, place)
            pronoun = names.pronoun(name) if kind in PERSONS else "it"
            entities.append(Entity(place, f"e{block * ENTITIES + place}", kind, name, _noun(kind, name, rng), pronoun))
    by_kind = {kind: [e for e in entities if e.kind == kind] for kind in KINDS}
    shared = _share_names(by_kind, rng)
    for entity in entities:
        _draw_facts(_Draw(rng, seed, block, by_kind, entity))
    for first, second in shared:
        for relation in sorted(first.facts.keys() & second.facts.keys()):
            del rng.choice((first, second)).facts[relation]
    return entities


def _name(seed: int, kind: str, block: int, place: int) -> str:
    """Return the name of the entity at a place of a block, before some entities share names."""
    name_kind = NAMED_AS[kind]
    number = block * NAME_KINDS.count(name_kind) + place - NAME_KINDS.index(name_kind)
    return names.name(seed, name_kind, number)


def _noun(kind: str, name: str, rng: Random) -> str:
    if kind == "building":
        last = name.split()[-1].lower()
        return "opera house" if last == "opera" else last
    return rng.choice(KINDS[kind].nouns)


def _share_names(kinds: dict[str, list[Entity]], rng: Random) -> list[tuple[Entity, Entity]]:
    """Give some entities the name of another and return the pairs."""
    alike = (("film", "book", 0), ("film", "book", 1), ("band", "product", 0), ("athlete", "musician", 0))
    pairs = [(kinds[kind][place], kinds[twin][place]) for kind, twin, place in (*alike, ("writer", "architect", 0))]
    chosen = [pair for pair in pairs if rng.random() < 0.6]
    for first, second in chosen:
        second.name, second.pronoun = first.name, first.pronoun
    return chosen


def _draw_facts(draw: _Draw) -> None:
    """Draw a fact for each relation of the entity's kind and keep the known ones."""
    entity = draw.entity
    used = {entity.name}
    for relation in KINDS[entity.kind].relations:
        fact = _draw_fact(draw, RELATIONS[relation].value)
        while fact.answer in used:
            fact = _draw_fact(draw, RELATIONS[relation].value)
        used.add(fact.answer)
        entity.facts[relation] = fact
    entity.facts = {relation: fact for relation, fact in entity.facts.items() if draw.rng.random() < KNOWN}


def _draw_fact(draw: _Draw, name: str) -> Fact:
    """Draw a value; small numbers are more common than large ones, and towns are old."""
    if name in NUMBERS:
        low, high, step, form = NUMBERS[name]
        number = low + step * int((high - low) / step * draw.rng.random() ** 2)
        return Fact(form.format(number), number)
    if name in YEARS:
        if name == "founding_year" and draw.entity.kind == "town":
            name = "town_year"
        number = draw.rng.randint(*YEARS[name])
        return Fact(str(number), number)
    return _draw_reference(draw, REFERENCES[name]) if name in REFERENCES else Fact(_draw_word(draw, name))


def _draw_reference(draw: _Draw, kinds: list[str]) -> Fact:
    """Draw an entity of one of the kinds, from this block or an earlier one."""
    target = draw.rng.choice([e for kind in kinds for e in draw.by_kind[kind]])
    if draw.rng.random() >= ELSEWHERE:
        return Fact(target.name, target=target.place)
    block = draw.rng.randint(max(0, draw.block - NEAR), draw.block)
    return Fact(_name(draw.seed, target.kind, block, target.place))


def _draw_word(draw: _Draw, name: str) -> str:
    """Draw a word of a pool. A block, but for films and products, lies in three neighbouring countries."""
    countries, continents = POOLS["countries"], POOLS["continents"]
    if name == "continent":
        return continents[countries.index(draw.entity.facts["P17"].answer) % len(continents)]
    if name == "country" and draw.entity.kind not in ("film", "product"):
        return countries[(draw.block * 7 + draw.rng.randrange(3)) % len(countries)]
    return draw.rng.choice(countries if name == "country" else POOLS[name])
