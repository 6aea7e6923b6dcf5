"""The atlas is frozen: bytes, sizes, and that gold is the one sentence that holds the answer.

What else it promises (splits, right answers, names, sentences that raise a fact) was checked of these bytes."""

import hashlib
import json
from itertools import islice

import pytest
from pydantic import ValidationError

from eadpr.atlas import names
from eadpr.atlas.facts import world
from eadpr.atlas.generate import MOST, Atlas, generate, size
from eadpr.atlas.texts import ENTITIES, PASSAGES, QUESTIONS
from eadpr.text.answers import has_answer

UNSEEN = ["P176", "P264", "P276", "P407", "P413", "P495", "P740"]
DEFAULT = Atlas(seed=0, passages=5880, raising=True, unseen=UNSEEN)
SMALL = DEFAULT.model_copy(update={"passages": 3 * PASSAGES})  # a block each for training, testing and the annotator


def lines(settings):
    """Every record as JSON: passages, then questions, in order."""
    blocks = list(generate(settings))
    yield from (json.dumps(passage) for block in blocks for passage in block.passages)
    yield from (json.dumps(question) for block in blocks for question in block.questions)


def digest(settings):
    return hashlib.sha256("\n".join(lines(settings)).encode()).hexdigest()


@pytest.mark.parametrize(("changes", "frozen"), [
    ({"passages": 3 * PASSAGES}, "a18c5e4bcdebc55f1f52bc5487ac5f07b1f2aef8e5e53c7ab76d5213ddc36fb2"),
    ({"passages": 3 * PASSAGES, "raising": False}, "43883bbb356c03af1185a0e801e9a5346c7577d7e9547e0d8925b3daac85643c"),
    ({}, "af986701be9e346db75d5419379dfda9d886402a05406591d75e28ab2db79ccc"),
])  # fmt: skip
def test_frozen(changes, frozen):
    """A new hash means that results on atlas are no longer comparable with earlier ones."""
    assert digest(DEFAULT.model_copy(update=changes)) == frozen


def test_a_larger_atlas_begins_with_the_smaller_one():
    small = list(generate(SMALL))
    assert small == list(islice(generate(SMALL.model_copy(update={"passages": 5 * PASSAGES})), len(small)))


@pytest.mark.parametrize(("passages", "expected"), [(1, PASSAGES), (PASSAGES, PASSAGES), (PASSAGES + 1, 2 * PASSAGES)])
def test_size_is_rounded_up_to_blocks(passages, expected):
    settings = DEFAULT.model_copy(update={"passages": passages})
    assert size(settings) == expected == sum(len(block.passages) for block in generate(settings))


def test_gold_is_a_sentence_that_holds_the_answer_and_nothing_else_in_the_passage_does():
    """The share of positives with the answer outside the gold sentence is exactly 0."""
    blocks = list(generate(DEFAULT))
    passages = {passage.id: passage for block in blocks for passage in block.passages}
    for entry in (entry for block in blocks for entry in block.questions if entry.question.type is None):
        (context,) = entry.contexts
        (gold,) = context.gold
        passage = passages[context.passage_id]
        assert gold in passage.sentences
        assert has_answer(entry.question.answers, passage.text[gold.start : gold.end])
        assert not has_answer(entry.question.answers, passage.text[: gold.start] + " " + passage.text[gold.end :])
        assert passage.title == entry.question.subject


@pytest.mark.parametrize("wrong", [{"unseen": ["P999"]}, {"unseen": list(QUESTIONS)}, {"passages": 0}, {"seed": -1}])
def test_bad_settings(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Atlas.model_validate(DEFAULT.model_dump() | wrong)


@pytest.mark.parametrize("kind", names.FORMS)
def test_names_differ_far_beyond_the_default_size(kind):
    """3,000 names of a kind are more than its forms of one set of words; the default atlas has at most 644."""
    count = names.STEMS * len(names.FORMS[kind]) + 3_000
    assert len({names.name(0, kind, n) for n in range(count)}) == count


def test_the_largest_atlas_can_be_named():
    blocks = MOST // PASSAGES
    assert [e.id for e in world(0, blocks)][-1] == f"e{(blocks + 1) * ENTITIES - 1}"
