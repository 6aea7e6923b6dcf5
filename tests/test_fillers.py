"""Fillers: sentences of like length from elsewhere, none of which says the answer."""

import random

import pytest

from eadpr.storage.records import Passage
from eadpr.supervision.fillers import NEAREST, Fillers, draw, pool_fillers, whole_sentences
from eadpr.supervision.pairs import Pair
from tests.toy_records import question, write_records

TEXT = "Ann liked tea. She was born in Rome. Rome is old."
PIECE = "She was born in Rome."  # 21 characters


def pair(question_id="q", passage_id="own", title="Ann", text=TEXT, answers=("Rome",)) -> Pair:
    return Pair(question(question_id, list(answers)), Passage(passage_id, title, text, None), None)


def of_pool(*passages: tuple[str, str, str], seed: int = 0) -> Fillers:
    return Fillers(seed, passages)


def test_only_whole_sentences_are_fillers():
    text = "in 1975 and left. He said “no.” It rained (all day.) 1975 was dry. He went to"
    assert whole_sentences(text) == ["He said “no.”", "It rained (all day.)", "1975 was dry."]


@pytest.mark.parametrize(("passage_id", "title", "sentence"), [
    ("own", "Other", "Bob went to see Paris."),  # the positive itself
    ("p", "Ann", "Bob went to see Paris."),  # of its title
    ("p", "Bob", "Bob went to see Rome."),  # says the answer
    ("p", "Bob", "Ann liked tea."),  # stands in the positive
    ("p", "Bob", "It rained."),  # less than half as long
    ("p", "Bob", "Bob went to see Paris, and then he saw London."),  # more than twice as long
    ("p", "Bob", "Bob went to see Paris, and"),
])  # fmt: skip
def test_what_does_not_fit(passage_id, title, sentence):
    good = ("g", "Eve", "Eve sang in Oslo then.")
    assert of_pool((passage_id, title, sentence)).sentence(pair(), PIECE, 0) is None
    for number in range(5):
        assert of_pool(good, (passage_id, title, sentence)).sentence(pair(), PIECE, number) == good[2]


def test_passages_without_a_title_are_of_no_common_title():
    pool = of_pool(("p", "", "Bob went to see Paris."))
    assert pool.sentence(pair(title=""), PIECE, 0) == "Bob went to see Paris."
    assert of_pool(("own", "", "Bob went to see Paris.")).sentence(pair(title=""), PIECE, 0) is None


def test_a_filler_is_one_of_those_nearest_in_length_as_a_naive_loop_finds_them():
    """The loop looks at every sentence; lengths are 5 to 64, more of some than NEAREST and fewer of others."""
    rng = random.Random(3)
    lengths = [rng.choice((10, 11, 30, 30, 30, rng.randrange(5, 65))) for _ in range(400)]
    texts = [f"N{i:03}".ljust(n - 1, "o") + "." for i, n in enumerate(lengths)]
    passages = [(f"p{i}", "Ann" if i % 5 == 0 else f"{i}", text) for i, text in enumerate(texts)]
    seen = set()
    for length in (3, 8, 10, 20, 30, 64, 100, 200):
        target, piece = pair(), "x" * length
        ordered = sorted(passages, key=lambda passage: len(passage[2]))
        apart = 0
        while sum(abs(len(text) - length) <= apart for _, _, text in ordered) < NEAREST:
            apart += 1
        window = [passage for passage in ordered if abs(len(passage[2]) - length) <= apart]
        for number in range(20):
            first = draw(0, target, number) % len(window)
            fit = (text for _, title, text in window[first:] + window[:first] if title != "Ann")
            expected = next((text for text in fit if length / 2 <= len(text) <= 2 * length), None)
            assert of_pool(*passages).sentence(target, piece, number) == expected
            seen.add(expected)
    assert None in seen
    assert len(seen) > 50


def test_draws_depend_on_seed_pair_and_number_alone_and_what_is_avoided_is_not_drawn_again():
    passages = [(f"p{i:02}", f"{i}", f"Person {i:02} came home late.") for i in range(30)]
    pool = of_pool(*passages)
    assert pool.sentence(pair(), PIECE, 0) == pool.sentence(pair(text=TEXT + " More."), PIECE, 0)
    for sentences in (
        [of_pool(*passages, seed=seed).sentence(pair(), PIECE, 0) for seed in range(9)],
        [pool.sentence(pair(question_id=f"{i}"), PIECE, 0) for i in range(9)],
        [pool.sentence(pair(passage_id=f"{i}"), PIECE, 0) for i in range(9)],
        [pool.sentence(pair(), PIECE, number) for number in range(9)],
    ):
        assert len(set(sentences)) > 4
    avoided: list[str] = []
    while (sentence := pool.sentence(pair(), PIECE, 0, avoid=avoided)) is not None:
        avoided.append(sentence)
    assert sorted(avoided) == [text for _, _, text in passages]


def test_the_pool_is_drawn_by_a_hash(tmp_path, monkeypatch):
    texts = [
        "Bob liked the tea there.",
        "Ann knew him by sight.",
        "Cid wrote about her time.",
        "Nobody has a title here.",
    ]
    passages = [(f"p{i}", f"t{i}", text) for i, text in enumerate(texts)]
    records = write_records(tmp_path, passages=passages)
    sentences = {i: pool_fillers(records / "passages.parquet", 0).sentence(pair(), PIECE, i) for i in range(9)}
    assert set(sentences.values()) == set(texts)
    monkeypatch.setattr("eadpr.supervision.fillers.POOL", 2)
    pools = set()
    for seed in range(20):
        pool = pool_fillers(records / "passages.parquet", seed)
        pools.add(frozenset(pool.sentence(pair(), PIECE, number) for number in range(20)))
    assert len(pools) > 3
    assert {len(pool) for pool in pools} == {2}
