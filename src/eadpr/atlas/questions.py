"""Questions of a block: one per fact, bridges over two entities, comparisons of two; and the sets they belong to.

A block is asked about for training, for testing or for the annotator, as a whole. Sets:
atlas/train, twohop/train and trex-seen/train (the T-REx questions of atlas/train); atlas/test, twohop/test and
trex-seen/test with the same relations about other entities; trex-unseen/test with relations that no training question
asks; trex-seen-known/test and trex-unseen-known/test about the entities of training, with facts not asked in it; and
atlas/annotator with all relations.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import NamedTuple

from eadpr.atlas.facts import Entity
from eadpr.atlas.pages import Stated
from eadpr.atlas.texts import KINDS, RELATIONS
from eadpr.records import Context, Question
from eadpr.trex import QUESTIONS

# T for training, E for testing, A for the annotator: 13, 7 and 8 of 28 blocks.
USES = [{"T": "train", "E": "test", "A": "annotator"}[letter] for letter in "TEATATETATETATTEATETATEATEAT"]
HELD_OUT = 0.1  # share of the seen T-REx facts of training entities that is kept for trex-seen-known/test
BRIDGES = 40  # per block, at most
COMPARISONS = 25


class AtlasQuestion(NamedTuple):
    """`sets` are (question set, split); `contexts` are its positives in the order of the hops, with gold sentences."""

    question: Question
    sets: list[tuple[str, str]]
    contexts: list[Context]


def use(block: int) -> str:
    """What a block's questions are for: train, test or annotator."""
    return USES[block % len(USES)]


def ask(
    entities: list[Entity], gold: list[dict[str, Stated]], *, seed: int, block: int, unseen: frozenset[str]
) -> list[AtlasQuestion]:
    """`gold` gives, for each entity, where its facts are stated."""
    purpose = use(block)
    rng = Random(f"atlas/{seed}/{block}/questions")
    asked = []
    for entity in entities:
        for relation in entity.facts:
            sets = _sets(relation, purpose, unseen, held_out=rng.random() < HELD_OUT)
            asked.append(_simple(entity, relation, gold[entity.place][relation], sets))
    if purpose != "annotator":
        asked += _some(_bridges(entities, gold, purpose, unseen), BRIDGES, rng)
        asked += _some(_comparisons(entities, gold, purpose, unseen), COMPARISONS, rng)
    return asked


def _sets(relation: str, purpose: str, unseen: frozenset[str], *, held_out: bool) -> list[tuple[str, str]]:
    if purpose == "annotator":
        return [("atlas", "annotator")]
    known = "-known" if purpose == "train" else ""
    if relation in unseen:
        return [(f"trex-unseen{known}", "test")]
    if relation not in QUESTIONS:
        return [("atlas", purpose)]
    if purpose == "train" and held_out:
        return [("trex-seen-known", "test")]
    return [("atlas", purpose), ("trex-seen", purpose)]


def _some(questions: list[AtlasQuestion], most: int, rng: Random) -> list[AtlasQuestion]:
    """At most so many, in the order given."""
    kept = sorted(rng.sample(range(len(questions)), min(most, len(questions))))
    return [questions[place] for place in kept]


def _simple(entity: Entity, relation: str, place: Stated, sets: list[tuple[str, str]]) -> AtlasQuestion:
    text = RELATIONS[relation].question.replace("[X]", entity.name)
    answer = entity.facts[relation].answer
    question = Question(f"{entity.id}-{relation}", text, [answer], "string", entity.name, relation, None, None)
    return _asked(question, [place], sets)


def _asked(question: Question, places: list[Stated], sets: list[tuple[str, str]]) -> AtlasQuestion:
    contexts = [
        Context(question.id, place.passage_id, "positive", order, None, None, [place.sentence], "")
        for order, place in enumerate(places)
    ]
    return AtlasQuestion(question, sets, contexts)


def _bridges(
    entities: list[Entity], gold: list[dict[str, Stated]], purpose: str, unseen: frozenset[str]
) -> list[AtlasQuestion]:
    """Two facts: a relation with a phrase that leads from `first` to `second`, and any of `second`; no unseen ones."""
    made = []
    for first in entities:
        for link, fact in first.facts.items():
            if not _links(link, fact.target, entities) or link in unseen:
                continue
            second = entities[fact.target]
            phrase = RELATIONS[link].phrase.replace("[X]", first.name)
            for relation, reached in second.facts.items():
                if relation in unseen or reached.answer == first.name:
                    continue
                text = RELATIONS[relation].question.replace("[X]", phrase)
                places = [gold[first.place][link], gold[second.place][relation]]
                question = Question(
                    f"{first.id}-{link}-{relation}", text, [reached.answer], "string", first.name, f"{link}/{relation}",
                    "bridge", [place.passage_id for place in places],
                )  # fmt: skip
                made.append(_asked(question, places, [("twohop", purpose)]))
    return made


def _links(relation: str, target: int | None, entities: list[Entity]) -> bool:
    """Whether the relation's phrase describes its target: a company that owns is one, another owner is not."""
    if target is None or RELATIONS[relation].phrase is None:
        return False
    return relation != "P127" or entities[target].kind == "company"


def _comparisons(
    entities: list[Entity], gold: list[dict[str, Stated]], purpose: str, unseen: frozenset[str]
) -> list[AtlasQuestion]:
    """Pairs of one kind with different numbers; the answer is one of the two names."""
    made = []
    for first, second in combinations(entities, 2):
        if first.kind != second.kind or first.name == second.name:
            continue
        for relation in KINDS[first.kind].relations:
            template = RELATIONS[relation].compare
            if template is None or not {relation} <= first.facts.keys() & second.facts.keys():
                continue
            numbers = {entity.name: entity.facts[relation].number for entity in (first, second)}
            if len(set(numbers.values())) == 1:
                continue
            answer = (max if RELATIONS[relation].most else min)(numbers, key=numbers.__getitem__)
            text = template.replace("[X]", first.name).replace("[Y]", second.name)
            places = [gold[first.place][relation], gold[second.place][relation]]
            question = Question(
                f"{first.id}-{second.id}-{relation}", text, [answer], "string", first.name, relation,
                "comparison", [place.passage_id for place in places],
            )  # fmt: skip
            made.append(_asked(question, places, [("twohop", purpose)]))
    return made
