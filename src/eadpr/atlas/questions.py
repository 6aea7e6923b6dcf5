"""The questions of a block: one per fact, bridges over two entities, comparisons of two; and their question sets.

A block is asked about for training, for testing or for the annotator, as a whole. The sets are atlas/train,
twohop/train and trex-seen/train (the T-REx questions of atlas/train); atlas/test, twohop/test and trex-seen/test with
the same relations about other entities; trex-unseen/test with relations that no training question asks;
trex-seen-known/test and trex-unseen-known/test about the entities of training, with facts that training does not ask;
and atlas/annotator with all relations.
"""

from itertools import combinations
from random import Random
from typing import NamedTuple

from eadpr.atlas.facts import Entity
from eadpr.atlas.pages import Stated
from eadpr.atlas.texts import KINDS, QUESTIONS, RELATIONS
from eadpr.storage.records import Context, Question

# The uses of 28 blocks: 13 for training, 7 for testing, 8 for the annotator.
_LETTERS = {"T": "train", "E": "test", "A": "annotator"}
USES = [_LETTERS[letter] for letter in "TEATATETATETATTEATETATEATEAT"]
HELD_OUT = 0.1  # share of the seen T-REx facts of training entities that is kept for trex-seen-known/test
BRIDGES = 40  # per block, at most
COMPARISONS = 25


Sets = list[tuple[str, str]]  # question set and split


class AtlasQuestion(NamedTuple):
    """A question with its sets; `contexts` are its positives in the order of the hops, with gold sentences."""

    question: Question
    sets: Sets
    contexts: list[Context]


def write_questions(
    entities: list[Entity], gold: list[dict[str, Stated]], *, seed: int, block: int, unseen: frozenset[str]
) -> list[AtlasQuestion]:
    """Write the questions of a block; `gold` maps, for each entity, relations to the sentences that state them."""
    purpose = USES[block % len(USES)]
    rng = Random(f"atlas/{seed}/{block}/questions")
    questions = []
    for entity in entities:
        for relation, fact in entity.facts.items():
            sets = _sets(relation, purpose, unseen, held_out=rng.random() < HELD_OUT)
            text = RELATIONS[relation].question.replace("[X]", entity.name)
            name = f"{entity.id}-{relation}", text, fact.answer, entity.name, relation
            questions.append(_question(*name, None, [gold[entity.place][relation]], sets))
    if purpose != "annotator":
        for write, most in ((_bridges, BRIDGES), (_comparisons, COMPARISONS)):
            possible = write(entities, gold, purpose, unseen)
            chosen = rng.sample(range(len(possible)), min(most, len(possible)))
            questions += [possible[place] for place in sorted(chosen)]
    return questions


def _sets(relation: str, purpose: str, unseen: frozenset[str], *, held_out: bool) -> Sets:
    if purpose == "annotator":
        return [("atlas", "annotator")]
    if relation in unseen:
        return [("trex-unseen-known" if purpose == "train" else "trex-unseen", "test")]
    if relation not in QUESTIONS:
        return [("atlas", purpose)]
    if purpose == "train" and held_out:
        return [("trex-seen-known", "test")]
    return [("atlas", purpose), ("trex-seen", purpose)]


def _question(
    id: str, text: str, answer: str, subject: str, relation: str, type: str | None, places: list[Stated], sets: Sets
) -> AtlasQuestion:
    hops = [place.passage_id for place in places] if type else None
    contexts = [
        Context(id, place.passage_id, "positive", order, None, [place.sentence], None)
        for order, place in enumerate(places)
    ]
    return AtlasQuestion(Question(id, text, [answer], "string", subject, relation, type, hops), sets, contexts)


def _bridges(
    entities: list[Entity], gold: list[dict[str, Stated]], purpose: str, unseen: frozenset[str]
) -> list[AtlasQuestion]:
    """Combine a fact that leads from `first` to `second`, and has a phrase, with a fact of `second`; both are seen."""
    bridges = []
    for first in entities:
        for link, fact in first.facts.items():
            if link in unseen or fact.target is None or RELATIONS[link].phrase is None:
                continue
            second, phrase = entities[fact.target], RELATIONS[link].phrase.replace("[X]", first.name)
            if link == "P127" and second.kind != "company":  # its phrase is "the company that owns …"
                continue
            for relation, reached in second.facts.items():
                if relation not in unseen and reached.answer != first.name:
                    text = RELATIONS[relation].question.replace("[X]", phrase)
                    places = [gold[first.place][link], gold[second.place][relation]]
                    name = f"{first.id}-{link}-{relation}", text, reached.answer, first.name, f"{link}/{relation}"
                    bridges.append(_question(*name, "bridge", places, [("twohop", purpose)]))
    return bridges


def _comparisons(
    entities: list[Entity], gold: list[dict[str, Stated]], purpose: str, unseen: frozenset[str]
) -> list[AtlasQuestion]:
    """Compare pairs of one kind with different numbers; the answer is one of the two names."""
    comparisons = []
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
            name = f"{first.id}-{second.id}-{relation}", text, answer, first.name, relation
            comparisons.append(_question(*name, "comparison", places, [("twohop", purpose)]))
    return comparisons
