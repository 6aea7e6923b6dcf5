"""The passages of an entity, with the sentence that states each of its facts.

Every known fact is stated once, in one passage of the entity, and raised in at least one other. Sentences that raise
can be switched off: fillers take their places; entities, facts, the choice of stating sentences and questions stay.
"""

from random import Random
from typing import NamedTuple

from eadpr.atlas.facts import Entity
from eadpr.atlas.texts import KINDS, RELATIONS
from eadpr.storage.records import Passage, Span

WORDS = 62  # a passage is filled up to at least so many
RAISED = 2  # a passage raises at least so many relations, as far as its entity has others than it states
TOGETHER = 2  # a passage states at most so many facts
BOTH = 0.3  # share of the stating passages that raise the same relation too
SEASONS = ("spring", "summer", "autumn", "winter")
POSSESSIVES = {"she": "her", "he": "his", "it": "its"}


class Stated(NamedTuple):
    passage_id: str
    sentence: Span


class Page(NamedTuple):
    """`gold` is where each fact is stated, by relation."""

    passages: list[Passage]
    gold: dict[str, Stated]


class Part(NamedTuple):
    """A sentence to be written; `relation` is None for one that neither states nor raises anything."""

    template: str
    relation: str | None
    states: bool


def page(entity: Entity, entities: list[Entity], seed: int, *, raising: bool) -> Page:
    made = Page([], {})
    unfit = {entity.name, *(fact.answer for fact in entity.facts.values())}
    others = [other.name for other in entities if other.kind == entity.kind and other.name not in unfit]  # for fillers
    for place, parts in enumerate(_plan(entity, Random(f"atlas/{seed}/{entity.id}/plan"))):
        rng = Random(f"atlas/{seed}/{entity.id}/{place}")
        parts = _filled([part for part in parts if part.states or raising], entity, rng, opens=place == 0)
        text, spans = _written(parts, entity, others, rng)
        passage = Passage(f"{entity.id}-{place}", entity.name, text, spans)
        made.passages.append(passage)
        stated = (pair for pair in zip(parts, spans, strict=True) if pair[0].states)
        made.gold.update((part.relation, Stated(passage.id, span)) for part, span in stated)
    return made


def _plan(entity: Entity, rng: Random) -> list[list[Part]]:
    """What each passage states and raises."""
    about = KINDS[entity.kind]
    stated, raised = ([[] for _ in range(about.passages)] for _ in range(2))
    for relation in entity.facts:
        rng.choice([held for held in stated if len(held) < TOGETHER]).append(relation)
    for relation in rng.sample(about.relations, len(about.relations)):
        free = [place for place, held in enumerate(stated) if relation not in held]
        raised[min(free, key=lambda place: (len(raised[place]), rng.random()))].append(relation)
    for place, held in enumerate(raised):
        others = [relation for relation in about.relations if relation not in (*held, *stated[place])]
        held += rng.sample(others, min(len(others), max(0, RAISED - len(held))))
        held += [relation for relation in stated[place] if rng.random() < BOTH]
    return [
        [Part(rng.choice(RELATIONS[relation].states), relation, True) for relation in states]
        + [Part(rng.choice(RELATIONS[relation].raises), relation, False) for relation in raises]
        for states, raises in zip(stated, raised, strict=True)
    ]


def _filled(parts: list[Part], entity: Entity, rng: Random, *, opens: bool) -> list[Part]:
    """The parts and enough fillers, in random order; an entity's first passage opens with what it is."""
    about = KINDS[entity.kind]
    first = [Part(rng.choice(about.lead), None, False)] if opens else []
    words = sum(len(part.template.split()) for part in (*first, *parts))
    for template in rng.sample(about.filler, len(about.filler)):
        if words >= WORDS:
            break
        parts.append(Part(template, None, False))
        words += len(template.split())
    rng.shuffle(parts)
    return first + parts


def _written(parts: list[Part], entity: Entity, others: list[str], rng: Random) -> tuple[str, list[Span]]:
    sentences, spans, start = [], [], 0
    for place, part in enumerate(parts):
        slots = _slots(entity, _subject(entity, part.template, rng) if place else entity.name)
        if part.states:
            answer = entity.facts[part.relation].answer
            slots |= {"A": answer, "aA": _with_article(answer)}
        elif part.relation is None:
            slots |= {"Y": rng.choice(others), "season": rng.choice(SEASONS)}
            slots |= {"noun": _with_article(entity.noun), "nouns": f"{entity.noun}s"}
        sentences.append(part.template.format_map(slots))
        spans.append(Span(start, start + len(sentences[-1])))
        start = spans[-1].end + 1
    return " ".join(sentences), spans


def _subject(entity: Entity, template: str, rng: Random) -> str:
    """The name, `the writer`, or a pronoun where the sentence has the entity as its subject and nowhere else."""
    alone = template.startswith(("{X} ", "{Xs} ")) and "{x}" not in template and "{xs}" not in template
    return rng.choice([entity.name, f"the {entity.noun}", *[entity.pronoun] * alone])


def _slots(entity: Entity, subject: str) -> dict[str, str]:
    forms = {"x": subject, "xs": POSSESSIVES.get(subject, f"{subject}'s")}
    capital = {name.capitalize(): form[0].upper() + form[1:] for name, form in forms.items()}
    return forms | capital | {"p": entity.pronoun, "ps": POSSESSIVES[entity.pronoun]}


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
