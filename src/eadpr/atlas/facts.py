"""The entities of one block and what is true of them.

Answers come from small pools (countries, genres, …) and from other entities: mostly of the same block, which bridge
questions need, partly of earlier blocks, by name only. No two facts of an entity have the same answer. A few entities
share their name with one of another kind; of two such entities at most one has any given relation, so that a question
has one right answer. What is not known of an entity can be raised, never stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from eadpr.atlas import names
from eadpr.atlas.texts import ENTITIES, KINDS, PERSONS, POOLS, RELATIONS

KNOWN = 0.9  # share of the facts of a kind's relations that are known
ELSEWHERE = 0.3  # share of references that go to another block
NEAR = 40  # blocks that a reference may look back
_NAMED_AS = dict.fromkeys(PERSONS, "person") | {"film": "work", "book": "work"}


class Fact(NamedTuple):
    """`number` is what a comparison compares, `target` the entity (its place in the block) that the answer names."""

    answer: str
    number: int | None
    target: int | None


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
    """What drawing an answer needs: the block's entities by kind, and the one that the answer is for, with its facts so
    far."""

    rng: Random
    seed: int
    block: int
    by_kind: dict[str, list[Entity]]
    entity: Entity


def world(seed: int, block: int) -> list[Entity]:
    """The ENTITIES entities of a block with their facts."""
    rng = Random(f"atlas/{seed}/{block}/facts")
    entities = _named(seed, block, rng)
    shared = _share_names(entities, rng)
    by_kind = {kind: [e for e in entities if e.kind == kind] for kind in KINDS}
    for entity in entities:
        _find_facts(_Draw(rng, seed, block, by_kind, entity))
    for first, second in shared:
        for relation in sorted(first.facts.keys() & second.facts.keys()):
            del rng.choice((first, second)).facts[relation]
    return entities


def _named(seed: int, block: int, rng: Random) -> list[Entity]:
    entities: list[Entity] = []
    for kind, about in KINDS.items():
        for _ in range(about.count):
            place = len(entities)
            name = _name(seed, kind, block, place)
            pronoun = names.pronoun(name) if kind in PERSONS else "it"
            entities.append(Entity(place, f"e{block * ENTITIES + place}", kind, name, _noun(kind, name, rng), pronoun))
    return entities


def _name(seed: int, kind: str, block: int, place: int) -> str:
    """The name given to the entity at a place of a block, before some take that of another."""
    named_as = _NAMED_AS.get(kind, kind)
    first, count = _PLACES[named_as]
    return names.name(seed, named_as, block * count + place - first)


def _places() -> dict[str, tuple[int, int]]:
    """Of the entities that are named alike, which stand side by side: the place of the first, and their number."""
    places: dict[str, tuple[int, int]] = {}
    start = 0
    for kind, about in KINDS.items():
        first, count = places.get(_NAMED_AS.get(kind, kind), (start, 0))
        assert first + count == start
        places[_NAMED_AS.get(kind, kind)] = (first, count + about.count)
        start += about.count
    return places


_PLACES = _places()


def _noun(kind: str, name: str, rng: Random) -> str:
    if kind == "building":
        last = name.split()[-1].lower()
        return {"opera": "opera house"}.get(last, last)
    return rng.choice(KINDS[kind].nouns)


def _share_names(entities: list[Entity], rng: Random) -> list[tuple[Entity, Entity]]:
    """Give some entities the name of another; returns the pairs."""
    of = {kind: [e for e in entities if e.kind == kind] for kind in KINDS}
    pairs = [(of["film"][0], of["book"][0]), (of["film"][1], of["book"][1]), (of["band"][0], of["product"][0])]
    pairs += [(of["athlete"][0], of["musician"][0]), (of["writer"][0], of["architect"][0])]
    chosen = [pair for pair in pairs if rng.random() < 0.6]
    for first, second in chosen:
        second.name, second.pronoun = first.name, first.pronoun
    return chosen


def _find_facts(draw: _Draw) -> None:
    """A fact for each relation of the entity's kind, of which those that are known stay."""
    entity = draw.entity
    taken = {entity.name}
    for relation in KINDS[entity.kind].relations:
        fact = _value(draw, RELATIONS[relation].value)
        while fact.answer in taken:
            fact = _value(draw, RELATIONS[relation].value)
        taken.add(fact.answer)
        entity.facts[relation] = fact
    entity.facts = {relation: fact for relation, fact in entity.facts.items() if draw.rng.random() < KNOWN}


def _value(draw: _Draw, name: str) -> Fact:
    return VALUES[name](draw) if name in VALUES else Fact(draw.rng.choice(POOLS[name]), None, None)


Value = Callable[[_Draw], Fact]


def _number(low: int, high: int, step: int, form: str) -> Value:
    """Small numbers are commoner than large ones."""

    def value(draw: _Draw) -> Fact:
        number = low + step * int((high - low) / step * draw.rng.random() ** 2)
        return Fact(form.format(number), number, None)

    return value


def _year(low: int, high: int) -> Value:
    def value(draw: _Draw) -> Fact:
        number = draw.rng.randint(low, high)
        return Fact(str(number), number, None)

    return value


def _founded(draw: _Draw) -> Fact:
    """Towns are old."""
    value = _year(1150, 1850) if draw.entity.kind == "town" else _year(1860, 2010)
    return value(draw)


def _entity(*kinds: str) -> Value:
    """An entity of one of the kinds, of this block or an earlier one."""

    def value(draw: _Draw) -> Fact:
        found = draw.rng.choice([e for kind in kinds for e in draw.by_kind[kind]])
        if draw.rng.random() >= ELSEWHERE:
            return Fact(found.name, None, found.place)
        block = draw.rng.randint(max(0, draw.block - NEAR), draw.block)
        return Fact(_name(draw.seed, found.kind, block, found.place), None, None)

    return value


def _country(draw: _Draw) -> Fact:
    """A block lies in three neighbouring countries; what is created comes from anywhere."""
    if draw.entity.kind in ("film", "product"):
        return Fact(draw.rng.choice(POOLS["countries"]), None, None)
    place = draw.block * 7 + draw.rng.randrange(3)
    return Fact(POOLS["countries"][place % len(POOLS["countries"])], None, None)


def _continent(draw: _Draw) -> Fact:
    """That of the entity's country."""
    place = POOLS["countries"].index(draw.entity.facts["P17"].answer)
    return Fact(POOLS["continents"][place % len(POOLS["continents"])], None, None)


VALUES: dict[str, Value] = {
    "town": _entity("town"),
    "company": _entity("company"),
    "owner": _entity("company", "entrepreneur"),
    "team": _entity("team"),
    "mayor": _entity("entrepreneur", "architect", "writer"),
    "director": _entity("filmmaker"),
    "author": _entity("writer"),
    "designer": _entity("architect"),
    "founder": _entity("entrepreneur"),
    "coach": _entity("athlete"),
    "country": _country,
    "continent": _continent,
    "birth_year": _year(1850, 1960),
    "year": _year(1860, 2010),
    "founding_year": _founded,
    "inhabitants": _number(1_200, 400_000, 100, "{:,}"),
    "employees": _number(120, 40_000, 10, "{:,}"),
    "seats": _number(400, 60_000, 50, "{:,}"),
    "pages": _number(90, 900, 1, "{}"),
    "height": _number(640, 6_900, 1, "{:,} metres"),
    "minutes": _number(61, 200, 1, "{} minutes"),
}
