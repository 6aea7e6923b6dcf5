"""The entities of one block and what is true of them.

Answers come from small pools (countries, genres, …) and from other entities: mostly of the same block, which bridge
questions need, partly of earlier blocks, by name only. No two facts of an entity have the same answer. A few entities
share their name with one of another kind; of two such entities at most one has any given relation, so that a question
has one right answer. What is not known of an entity can be raised, never stated.
"""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from eadpr.atlas import names
from eadpr.atlas.texts import ENTITIES, KINDS, PERSONS, POOLS, RELATIONS

KNOWN = 0.9  # share of the facts of a kind's relations that are known
ELSEWHERE = 0.3  # share of references that go to another block
NEAR = 40  # blocks that a reference may look back
NAMED_AS = {kind: "person" if kind in PERSONS else kind for kind in KINDS} | {"film": "work", "book": "work"}
# By place in a block what the entity is named as; those named alike stand side by side.
ALIKE = [NAMED_AS[kind] for kind, about in KINDS.items() for _ in range(about.count)]
# What answers are: entities of these kinds, years, numbers (low, high, step, form), or else words of a pool.
REFERENCES = {
    "town": ("town",),
    "company": ("company",),
    "owner": ("company", "entrepreneur"),
    "team": ("team",),
    "mayor": ("entrepreneur", "architect", "writer"),
    "director": ("filmmaker",),
    "author": ("writer",),
    "designer": ("architect",),
    "founder": ("entrepreneur",),
    "coach": ("athlete",),
}
YEARS = {"birth_year": (1850, 1960), "year": (1860, 2010), "founding_year": (1860, 2010), "town_year": (1150, 1850)}
NUMBERS = {
    "inhabitants": (1_200, 400_000, 100, "{:,}"),
    "employees": (120, 40_000, 10, "{:,}"),
    "seats": (400, 60_000, 50, "{:,}"),
    "pages": (90, 900, 1, "{}"),
    "height": (640, 6_900, 1, "{:,} metres"),
    "minutes": (61, 200, 1, "{} minutes"),
}


class Fact(NamedTuple):
    """`number` is what a comparison compares, `target` the entity (its place in the block) that the answer names."""

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
    by_kind = {kind: [e for e in entities if e.kind == kind] for kind in KINDS}
    shared = _share_names(by_kind, rng)
    for entity in entities:
        _find_facts(_Draw(rng, seed, block, by_kind, entity))
    for first, second in shared:
        for relation in sorted(first.facts.keys() & second.facts.keys()):
            del rng.choice((first, second)).facts[relation]
    return entities


def _named(seed: int, block: int, rng: Random) -> list[Entity]:
    entities: list[Entity] = []
    for kind, about in KINDS.items():
        for place in range(len(entities), len(entities) + about.count):
            name = _name(seed, kind, block, place)
            pronoun = names.pronoun(name) if kind in PERSONS else "it"
            entities.append(Entity(place, f"e{block * ENTITIES + place}", kind, name, _noun(kind, name, rng), pronoun))
    return entities


def _name(seed: int, kind: str, block: int, place: int) -> str:
    """The name given to the entity at a place of a block, before some take that of another."""
    named_as = NAMED_AS[kind]
    return names.name(seed, named_as, block * ALIKE.count(named_as) + place - ALIKE.index(named_as))


def _noun(kind: str, name: str, rng: Random) -> str:
    if kind == "building":
        last = name.split()[-1].lower()
        return "opera house" if last == "opera" else last
    return rng.choice(KINDS[kind].nouns)


def _share_names(of: dict[str, list[Entity]], rng: Random) -> list[tuple[Entity, Entity]]:
    """Give some entities the name of another; returns the pairs."""
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
    """Of numbers small ones are commoner than large ones; towns are old."""
    if name in NUMBERS:
        low, high, step, form = NUMBERS[name]
        number = low + step * int((high - low) / step * draw.rng.random() ** 2)
        return Fact(form.format(number), number)
    if name in YEARS:
        of_town = name == "founding_year" and draw.entity.kind == "town"
        number = draw.rng.randint(*YEARS["town_year" if of_town else name])
        return Fact(str(number), number)
    return _reference(draw, REFERENCES[name]) if name in REFERENCES else Fact(_word(draw, name))


def _reference(draw: _Draw, kinds: tuple[str, ...]) -> Fact:
    """An entity of one of the kinds, of this block or an earlier one."""
    found = draw.rng.choice([e for kind in kinds for e in draw.by_kind[kind]])
    if draw.rng.random() >= ELSEWHERE:
        return Fact(found.name, target=found.place)
    block = draw.rng.randint(max(0, draw.block - NEAR), draw.block)
    return Fact(_name(draw.seed, found.kind, block, found.place))


def _word(draw: _Draw, name: str) -> str:
    """A block lies in three neighbouring countries; what is created comes from anywhere. A continent is that of the
    entity's country."""
    countries, continents = POOLS["countries"], POOLS["continents"]
    if name == "continent":
        return continents[countries.index(draw.entity.facts["P17"].answer) % len(continents)]
    if name == "country" and draw.entity.kind not in ("film", "product"):
        return countries[(draw.block * 7 + draw.rng.randrange(3)) % len(countries)]
    return draw.rng.choice(countries if name == "country" else POOLS[name])
