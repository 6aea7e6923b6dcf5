"""Fillers: sentences of like length from elsewhere, none of which says the answer."""

import random

import pytest

from eadpr.storage import tables
from eadpr.storage.records import Passage, Positive, Question
from eadpr.supervision.draws import NEAREST, draw
from eadpr.supervision.fillers import BEST, Fillers, Pool, fillers, whole_sentences
from eadpr.supervision.pairs import Pair
from tests.toy_records import question, write_ranking, write_records

TEXT = "Ann liked tea. She was born in Rome. Rome is old."
PIECE = "She was born in Rome."  # 21 characters


def pair(question_id="q", passage_id="own", title="Ann", text=TEXT, answers=("Rome",)) -> Pair:
    return Pair(question(question_id, list(answers)), Passage(passage_id, title, text, None), None)


def of_pool(*passages: tuple[str, str, str], seed: int = 0) -> Fillers:
    return Fillers(seed, Pool(passages))


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
    found = of_pool(("p", "", "Bob went to see Paris."))
    assert found.sentence(pair(title=""), PIECE, 0) == "Bob went to see Paris."
    assert of_pool(("own", "", "Bob went to see Paris.")).sentence(pair(title=""), PIECE, 0) is None


def test_a_filler_is_one_of_those_nearest_in_length_as_a_naive_loop_finds_them():
    """The loop looks at every sentence; lengths are 5 to 64, more of some than NEAREST and fewer of others."""
    rng = random.Random(3)
    lengths = [rng.choice((10, 11, 30, 30, 30, rng.randrange(5, 65))) for _ in range(400)]
    texts = [f"N{i:03}".ljust(n - 1, "o") + "." for i, n in enumerate(lengths)]
    passages = [(f"p{i}", "Ann" if i % 5 == 0 else f"{i}", text) for i, text in enumerate(texts)]
    seen = set()
    for length in (3, 8, 10, 20, 30, 64, 100, 200):
        asked, piece = pair(), "x" * length
        ordered = sorted(passages, key=lambda passage: len(passage[2]))
        apart = 0
        while sum(abs(len(text) - length) <= apart for _, _, text in ordered) < NEAREST:
            apart += 1
        window = [passage for passage in ordered if abs(len(passage[2]) - length) <= apart]
        for number in range(20):
            first = draw(0, asked, number) % len(window)
            fit = (text for _, title, text in window[first:] + window[:first] if title != "Ann")
            expected = next((text for text in fit if length / 2 <= len(text) <= 2 * length), None)
            assert of_pool(*passages).sentence(asked, piece, number) == expected
            seen.add(expected)
    assert None in seen
    assert len(seen) > 50


def test_draws_depend_on_seed_pair_and_number_alone_and_what_is_avoided_is_not_drawn_again():
    passages = [(f"p{i:02}", f"{i}", f"Person {i:02} came home late.") for i in range(30)]
    pool = of_pool(*passages)
    assert pool.sentence(pair(), PIECE, 0) == pool.sentence(pair(text=TEXT + " More."), PIECE, 0)
    for other in (
        [of_pool(*passages, seed=seed).sentence(pair(), PIECE, 0) for seed in range(9)],
        [pool.sentence(pair(question_id=f"{i}"), PIECE, 0) for i in range(9)],
        [pool.sentence(pair(passage_id=f"{i}"), PIECE, 0) for i in range(9)],
        [pool.sentence(pair(), PIECE, number) for number in range(9)],
    ):
        assert len(set(other)) > 4
    taken: list[str] = []
    while (found := pool.sentence(pair(), PIECE, 0, avoid=taken)) is not None:
        taken.append(found)
    assert sorted(taken) == [text for _, _, text in passages]


@pytest.fixture
def collection(tmp_path):
    """Ann has three passages, of which q has `a1` and `a2` as positives; the ranking of q holds `a1` too."""
    passages = [
        ("a0", "Ann", "Ann sang in a choir here. Rome was far away then."),
        ("a1", "Ann", TEXT),
        ("a2", "Ann", "Another of her positives."),
        ("b", "Bob", "Bob liked the tea there. Ann knew him by sight."),
        ("c", "Cid", "Cid wrote about her time."),
        ("z", "", "Nobody has a title here."),
        ("y", "", "Nor is there one for it."),
    ]
    asked = [question("q", ["Rome"]), question("r", ["x"])]
    records = write_records(tmp_path / "records", passages=passages, questions=asked)
    found = [Positive("q", "a1", "given", None), Positive("q", "a2", "given", None), Positive("r", "z", "given", None)]
    tables.write(tmp_path / "positives.parquet", Positive, found)
    write_ranking(tmp_path / "bm25", train={"q": ["a1", "b", "c"]}, evaluate={"r": ["y", "z"]})
    return {"records": records, "positives": tmp_path / "positives.parquet", "ranking": tmp_path / "bm25"}


OF_BOB, ABOUT_BOB, OF_CID = "Bob liked the tea there.", "Ann knew him by sight.", "Cid wrote about her time."
UNTITLED = "Nobody has a title here.", "Nor is there one for it."


@pytest.mark.parametrize(("kind", "of_q", "of_r"), [
    ("random", {OF_BOB, ABOUT_BOB, OF_CID, *UNTITLED}, None), ("title", {"Ann sang in a choir here."}, {None}),
    ("ranked", {ABOUT_BOB}, {UNTITLED[1]}),
])  # fmt: skip
def test_fillers_of_each_kind(collection, kind, of_q, of_r):
    """q has two positives of one title, r one without; the nearest in length of those ranked for q is Bob's second."""
    with fillers(kind, seed=0, **collection) as found:
        for passage_id in ("a1", "a2"):
            asked = pair(passage_id=passage_id)
            assert {found.sentence(asked, PIECE, number) for number in range(60)} == of_q
        if of_r:
            assert {found.sentence(pair("r", "z", "", "Is there?"), PIECE, number) for number in range(9)} == of_r


def test_the_nearest_in_length_comes_first_and_of_equals_one_is_drawn(collection):
    """Bob's first sentence has 24 characters, his second 22, Cid's 25."""
    with fillers("ranked", seed=0, **collection) as found:
        asked = pair(passage_id="a1")
        in_turn = [found.sentence(asked, PIECE, 0, avoid) for avoid in ((), {ABOUT_BOB}, {ABOUT_BOB, OF_BOB})]
        assert in_turn == [ABOUT_BOB, OF_BOB, OF_CID]
        assert {found.sentence(asked, "x" * 23, number) for number in range(30)} == {OF_BOB, ABOUT_BOB}


def test_only_the_passages_around_a_positive_and_the_best_ranks_are_looked_at(tmp_path):
    """Of 60 passages of a title and 60 ranks; every sentence is of one length."""
    ids = [f"{i:02}" for i in range(60)]
    records = write_records(
        tmp_path / "records",
        passages=[(i, "Ann", f"Number {i} is one of sixty.") for i in ids],
        questions=[Question("q", "q?", ["none"], "string", None, None, None, None)],
    )
    tables.write(tmp_path / "positives.parquet", Positive, [Positive("q", "30", "given", None)])
    ranking = write_ranking(tmp_path / "bm25", train={"q": ids})
    given = {"records": records, "positives": tmp_path / "positives.parquet", "ranking": ranking}
    asked = pair(passage_id="30", text="Number 30 is one of sixty.", answers=("none",))
    found = {}
    for kind in ("title", "ranked"):
        with fillers(kind, seed=0, **given) as made:
            found[kind] = {made.sentence(asked, asked.passage.text, number)[7:9] for number in range(300)}
    half = BEST // 2
    assert found["title"] == set(ids[30 - half : 30] + ids[31 : 31 + half])
    assert found["ranked"] == set(ids[:BEST])


def test_a_pool_is_drawn_by_a_hash(collection, monkeypatch):
    monkeypatch.setattr("eadpr.supervision.fillers.POOL", 2)
    drawn = set()
    for seed in range(40):
        with fillers("random", seed=seed, **collection) as found:
            asked = pair(question_id="r", passage_id="none", title="None", answers=("x",), text="None.")
            drawn.add(frozenset(found.sentence(asked, PIECE, number) for number in range(20)) - {None})
    assert len(drawn) > 5
    assert max(map(len, drawn)) <= 5
