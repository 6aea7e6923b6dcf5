"""HotpotQA's official metrics: golden values, and gold facts."""

import json

import pytest

from eadpr.readers.evaluate import answer_scores, read_golds, score_predictions
from eadpr.readers.predictions import Sentence
from eadpr.storage import tables
from eadpr.storage.records import Origin, Passage, Positive, Question, Span
from tests.corpus_toy import rows
from tests.path_reading_toy import supported
from tests.small_collection import write_records
from tests.test_hotpot import BRIDGE, MOOR, ROAD, YES, prepared

pytestmark = pytest.mark.formats


@pytest.mark.parametrize(
    ("answer", "gold", "em", "f1", "prec", "recall"),
    [  # the first six from the official functions (methods.md 6)
        ("yes", "yes", 1, 1, 1, 1),
        ("yes", "no", 0, 0, 0, 0),
        ("Yes, he did", "yes", 0, 0, 0, 0),
        ("The Beatles", "beatles", 1, 1, 1, 1),
        ("John Lennon", "Lennon", 0, 2 / 3, 0.5, 1),
        ("", "x", 0, 0, 0, 0),
        ("noanswer", "noanswer x", 0, 0, 0, 0),
        ("a b b c", "b b b", 0, 2 * (2 / 3) ** 2 / (4 / 3), 2 / 3, 2 / 3),  # without the article: b b c
        ("the", "", 1, 0, 0, 0),  # nothing is left of either
    ],
)
def test_answer_scores(answer, gold, em, f1, prec, recall):
    assert answer_scores(answer, gold) == pytest.approx((em, f1, prec, recall))


PREDICTIONS = [
    supported("b1", "Leeds", [Sentence("Ann_Moor", 1), Sentence("Dune_Road_(novel)", 0)]),
    supported("c1", "no", [Sentence("Bob_&_Hill", 2), Sentence("Ann_Moor", 2)]),
]


@pytest.fixture
def hotpot(tmp_path):
    """Records and positives of the two items of test_hotpot."""
    records, _ = prepared(tmp_path, BRIDGE, YES)
    return records, positives_of(records, tmp_path)


def positives_of(records, folder):
    """Write positives as their stage does."""
    contexts = (c for c in rows(records, "contexts") if c.role == "positive")
    positives = (Positive(c.question_id, c.passage_id, "given", c.gold) for c in contexts)
    tables.write(folder / "positives.parquet", Positive, positives)
    return folder / "positives.parquet"


def test_gold_facts_are_those_of_the_items(hotpot):
    bridge, yes = read_golds(*hotpot, ["b1", "c1"])
    assert bridge == ("b1", "Leeds", {("Ann_Moor", 1), ("Dune_Road_(novel)", 0)})
    assert yes == ("c1", "yes", {("Bob_&_Hill", 0), ("Bob_&_Hill", 2), ("Ann_Moor", 2)})


def test_gold_facts_without_a_sentence_or_a_text_count_as_the_official_script_counts_them(tmp_path):
    """One sentence that its paragraph lacks, one of a page that has another text in the corpus, one that is empty."""
    bare = [MOOR[0], [*MOOR[1], ""]]
    pages = [MOOR[0], [*MOOR[1], ""]], [ROAD[0], ["Dune Road is a novel."]]
    lines = "\n".join(json.dumps({"title": title, "text": text}) for title, text in pages).encode()
    facts = [["Ann Moor", 1], ["Ann Moor", 1], ["Ann Moor", 9], ["Ann Moor", 3], ["Dune Road (novel)", 1]]
    item = BRIDGE | {"context": [bare, ROAD], "supporting_facts": facts}
    records, report = prepared(tmp_path, item, pages=lines)
    assert (report["gold_sentences_missing"], report["gold_lost_to_other_text"]) == (1, 1)
    (gold,) = read_golds(records, positives_of(records, tmp_path), ["b1"])
    assert gold.support == {("Ann_Moor", 1), ("Ann_Moor", 9), ("Ann_Moor", 3), ("Dune_Road_(novel)", 1)}


def test_gold_facts_that_no_file_names_are_the_sentences_of_gold_evidence(tmp_path):
    """Atlas has such facts."""
    passage = Passage("p", "P", "It ran. It fell. It rose.", [Span(0, 7), Span(7, 16), Span(16, 25)])
    questions = [Question(i, "?", ["x"], "string", None, None, None, ["p"]) for i in ("q", "r")]
    records = write_records(tmp_path, [passage], questions, 0)
    tables.write(records / "origins.parquet", Origin, [Origin(i, "f", 1, None) for i in ("q", "r")])
    tables.write(tmp_path / "positives.parquet", Positive, [Positive("q", "p", "given", [Span(0, 7), Span(20, 22)])])
    golds = read_golds(records, tmp_path / "positives.parquet", ["q", "r"])
    assert [gold.support for gold in golds] == [{("p", 0), ("p", 2)}, set()]


def test_scores_of_predictions_by_hand(hotpot):
    by_id = score_predictions(read_golds(*hotpot, ["b1", "c1"]), {p.question_id: p for p in PREDICTIONS})
    assert by_id["b1"]["joint_em"] == 1
    assert (by_id["c1"]["sp_prec"], by_id["c1"]["sp_recall"], by_id["c1"]["f1"]) == (1, pytest.approx(2 / 3), 0)
