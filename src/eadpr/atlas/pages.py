"""The passages of an entity, with the sentence that states each of its facts.

Every known fact is stated once, in one passage of the entity, and raised in at least one other. Without raising
sentences (`raising: false`) fillers replace them; entities, facts, stating sentences and questions stay the same.
"""

from random import Random
from typing import NamedTuple

from eadpr.atlas.facts import Entity
from eadpr.atlas.texts import KINDS, RELATIONS
from eadpr.storage.records import Passage, Span

WORDS = 62  # least words of a passage with its fillers
RAISED = 2  # least relations that a passage raises, if its entity has enough that it does not state
TOGETHER = 2  # most facts that a passage states
BOTH = 0.3  # share of the stating passages that raise the same relation too
SEASONS = ("spring", "summer", "autumn", "winter")
POSSESSIVES = {"she": "her", "he": "his", "it": "its"}


class Stated(NamedTuple):
    passage_id: str
    sentence: Span


class Page(NamedTuple):
    """The passages of an entity; `gold` maps relations to the sentences that state their facts."""

    passages: list[Passage]
    gold: dict[str, Stated]


class Part(NamedTuple):
    """A sentence to be written; `relation` is None for one that neither states nor raises anything."""

    template: str
    relation: str | None
    states: bool


def write_page(entity: Entity, entities: list[Entity], seed: int, *, raising: bool) -> Page:
    """Write the passages of an entity; fillers name others of its kind in its block."""
    page = Page([], {})
    unfit = {entity.name, *(fact.answer for fact in entity.facts.values())}
    filler_names = [e.name for e in entities if e.kind == entity.kind and e.name not in unfit]
    for place, parts in enumerate(_plan(entity, Random(f"atlas/{seed}/{entity.id}/plan"))):
        rng = Random(f"atlas/{seed}/{entity.id}/{place}")
        parts = _add_fillers([part for part in parts if part.states or raising], entity, rng, opens=place == 0)
        text, spans = _write_text(parts, entity, filler_names, rng)
        passage = Passage(f"{entity.id}-{place}", entity.name, text, spans)
        page.passages.append(passage)
        for part, span in zip(parts, spans, strict=True):
            if part.states:
                page.gold[part.relation] = Stated(passage.id, span)
    return page


def _plan(entity: Entity, rng: Random) -> list[list[Part]]:
    """Choose the facts that each passage states and the relations that it raises."""
    about = KINDS[entity.kind]
    stated: list[list[str]] = [[] for _ in range(about.passages)]
    raised: list[list[str]] = [[] for _ in range(about.passages)]
    for relation in entity.facts:
        rng.choice([relations for relations in stated if len(relations) < TOGETHER]).append(relation)
    for relation in rng.sample(about.relations, len(about.relations)):
        free = [place for place, relations in enumerate(stated) if relation not in relations]
        raised[min(free, key=lambda place: (len(raised[place]), rng.random()))].append(relation)
    for states, raises in zip(stated, raised, strict=True):
        unused = [relation for relation in about.relations if relation not in (*raises, *states)]
        raises += rng.sample(unused, min(len(unused), max(0, RAISED - len(raises))))
        raises += [relation for relation in states if rng.random() < BOTH]
    return [
        [Part(rng.choice(RELATIONS[relation].states), relation, True) for relation in states]
        + [Part(rng.choice(RELATIONS[relation].raises), relation, False) for relation in raises]
        for states, raises in zip(stated, raised, strict=True)
    ]


def _add_fillers(parts: list[Part], entity: Entity, rng: Random, *, opens: bool) -> list[Part]:
    """Add fillers and shuffle; the first passage of an entity opens with a sentence that introduces it."""
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


def _write_text(parts: list[Part], entity: Entity, filler_names: list[str], rng: Random) -> tuple[str, list[Span]]:
    sentences, spans, start = [], [], 0
    for place, part in enumerate(parts):
        slots = _slots(entity, _subject(entity, part.template, rng) if place else entity.name)
        if part.states:
            answer = entity.facts[part.relation].answer
            slots |= {"A": answer, "aA": _with_article(answer)}
        elif part.relation is None:
            slots |= {"Y": rng.choice(filler_names), "season": rng.choice(SEASONS)}
            slots |= {"noun": _with_article(entity.noun), "nouns": f"{entity.noun}s"}
        sentences.append(part.template.format_map(slots))
        spans.append(Span(start, start + len(sentences[-1])))
        start = spans[-1].end + 1
    return " ".join(sentences), spans


def _subject(entity: Entity, template: str, rng: Random) -> str:
    """Choose the name, a phrase like `the writer`, or a pronoun where the entity is the subject and not named again."""
    choices = [entity.name, f"the {entity.noun}"]
    if template.startswith(("{X} ", "{Xs} ")) and "{x}" not in template and "{xs}" not in template:
        choices.append(entity.pronoun)
    return rng.choice(choices)


def _slots(entity: Entity, subject: str) -> dict[str, str]:
    forms = {"x": subject, "xs": POSSESSIVES.get(subject, f"{subject}'s")}
    capital = {name.capitalize(): form[0].upper() + form[1:] for name, form in forms.items()}
    return forms | capital | {"p": entity.pronoun, "ps": POSSESSIVES[entity.pronoun]}


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
