"""Near-duplicates in the corpus: ranks against a naive ranking of everything, and the report's numbers by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import evaluate, report_sections, robustness
from eadpr.evaluation.config import Evaluate, MeasuredBy, Robustness
from eadpr.evaluation.metrics import Judgements
from eadpr.evaluation.outcomes import MADE
from eadpr.machine import Machine
from eadpr.records import NearDuplicate, Outcome, Passage, Positive, Ranked
from eadpr.search import displacement
from eadpr.search.config import Encode, Retrieve
from eadpr.search.displacement import displaced, displacements
from eadpr.search.encode import embed, encode
from eadpr.search.retrieve import retrieve
from eadpr.search.vectors import Vectors
from eadpr.text import has_answer
from eadpr.training.encoder import load
from tests import small_collection as small
from tests.evaluated import REPORT, cells, write_outcomes

COUNTS = [0, 1, 3]
REPORTED = {"generator": "rules", "near_duplicates": 12}


def write_vectors(folder: Path, vectors: np.ndarray, shard_passages: int = 5) -> Vectors:
    folder.mkdir()
    for number, start in enumerate(range(0, len(vectors), shard_passages)):
        np.save(folder / f"vectors-{number:05d}.npy", vectors[start : start + shard_passages].astype(np.float16))
    shape = {"rows": len(vectors), "dim": vectors.shape[1], "shard_passages": shard_passages}
    files.write_json(folder / "vectors.json", shape)
    return Vectors(folder)


def naive(scores, questions, added, numbers, count, question, rank) -> int:
    """How many of the first `count` stand before a ranked passage."""
    own = [np.float32(questions[question].astype(np.float64) @ vector.astype(np.float64)) for vector in added]
    return sum(score > scores[question, rank] for score, n in zip(own, numbers, strict=True) if n < count)


@pytest.mark.parametrize("seed", range(4))
def test_displacements_are_those_of_a_loop_over_everything(tmp_path, monkeypatch, seed):
    """Small whole numbers, so that many scores are equal; the last ranking is short, the last numbers never join."""
    monkeypatch.setattr(displacement, "BLOCK_QUESTIONS", 2)
    monkeypatch.setattr(displacement, "BLOCK_ADDED", 3)
    rng = np.random.default_rng(seed)
    questions = rng.integers(-2, 3, (5, 3)).astype(np.float32)
    added = rng.integers(-2, 3, (14, 3)).astype(np.float16)
    numbers = rng.integers(0, 5, 14)
    scores = -np.sort(-rng.integers(-6, 7, (5, 4)).astype(np.float32))
    scores[4, 2:] = -np.inf
    vectors = write_vectors(tmp_path / "vectors", added)
    told = []
    found = displacements(scores, questions, vectors, numbers, COUNTS, advance=told.append)
    expected = [
        [[naive(scores, questions, added, numbers, n, q, r) for r in range(4)] for q in range(5)] for n in COUNTS
    ]
    np.testing.assert_array_equal(found, expected)
    assert found[0].sum() == 0
    assert sum(told) == 5
    odd = displacements(scores, questions, vectors, numbers, COUNTS, joins=lambda q, rows: (rows + q) % 2 == 1)
    for q in range(5):
        joined = [row for row in range(14) if (row + q) % 2]
        assert odd[2, q].tolist() == [
            naive(scores, questions, added[joined], numbers[joined], 3, q, r) for r in range(4)
        ]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6))
def test_hits_move_by_their_displacement_and_the_last_fall_out(ranks):
    hits, steps = zip(*ranks, strict=True)
    shift = np.cumsum([steps], axis=1)
    expected = [False] * len(hits)
    for rank, hit in enumerate(hits):
        if hit and rank + shift[0, rank] < len(hits):
            expected[rank + shift[0, rank]] = True
    assert displaced(np.array([hits]), shift).tolist() == [expected]


def test_hits_by_answer_by_id_and_of_hops_all_move():
    first, second, third = np.eye(3, dtype=np.bool_)[:, None]
    one = np.ones(1, np.int64)
    moved = robustness._displaced(Judgements(first, second, third, one, one, one), np.ones((1, 3), np.int32))
    np.testing.assert_array_equal(moved.answer_QK, second)
    np.testing.assert_array_equal(moved.relevant_QK, third)
    assert not moved.supporting_QK.any()


# The stage on a small collection with a random encoder

EVALUATE = Evaluate(top_k=[1, 2, 5], mrr_at=10, ndcg_at=5, recall_at=[5], all_at=[2])
QUESTIONS = [
    small.question("train", "where", ["w1"]),
    small.question("a", "where was w1", ["w1"]),
    small.question("b", "w2 w3 capital", ["w2 w3", "w7"]),
    small.question("c", "ada born", [r"w1\d"], "regex"),
    small.question("d", "w5 w6", []),
    small.question("e", "w8 was born w9", []),
]
SETTINGS = robustness.RobustnessSettings(
    Robustness(counts=COUNTS), EVALUATE, Encode(**small.ENCODE), Sets(**small.SETS), Machine(**small.MACHINE)
)


def write_near_duplicates(folder: Path) -> list[NearDuplicate]:
    """Up to four per question; `a` has one. Those of b hold the answer of a."""
    rng = np.random.default_rng(5)
    counts, rows = {"a": 1, "b": 4, "c": 4, "d": 3}, []
    for question_id, count in counts.items():
        for number in range(count):
            text = " ".join(rng.choice(small.WORDS[20:40], rng.integers(2, 12)))
            text += " w1" if question_id == "b" else ""
            rows.append(NearDuplicate(question_id, "p3", number, "rules", "w2" if number else "", text))
    tables.write(folder / "near_duplicates.parquet", NearDuplicate, rows)
    return rows


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    records = small.write_records(folder / "records", small.passages(), QUESTIONS, train=1)
    model = small.write_model(folder / "model")
    options = {"hardware": SETTINGS.hardware}
    encode(records / "passages.parquet", model, folder / "vectors", settings=SETTINGS.encode, **options)
    wanted = Retrieve(**small.RETRIEVE)
    retrieve(records, model, folder / "vectors", folder / "ranking", settings=wanted, sets=SETTINGS.sets, **options)
    write_near_duplicates(folder / "near")
    files.write_json(folder / "near" / "report.json", REPORTED)
    ranked = tables.rows(folder / "ranking" / "evaluate.parquet", Ranked)
    third = [Positive(row.question_id, row.passage_id, "given", None) for row in ranked if row.rank == 3]
    positives = small.write_positives(folder / "positives", third, [])
    return robustness.RobustnessInputs(records, positives, folder / "ranking", model, folder / "near")


def outcomes(path: Path) -> list[Outcome]:
    return list(tables.rows(path, Outcome))


def test_without_near_duplicates_the_outcomes_are_those_of_evaluate(arm, tmp_path):
    robustness.run(arm, tmp_path / "out", SETTINGS)
    evaluate.run(
        records=arm.records, positives=arm.positives, ranking=arm.ranking, pairs=None, settings=EVALUATE,
        sets=SETTINGS.sets, outcomes=tmp_path / "outcomes.parquet",
    )  # fmt: skip
    found = [o for o in outcomes(tmp_path / "outcomes.parquet") if o.metric not in evaluate.COUNTS]
    assert found
    assert outcomes(tmp_path / "out" / "0.parquet") == found


def test_with_near_duplicates_the_outcomes_are_those_of_ranking_everything(arm, tmp_path):
    """The corpus with the near-duplicates behind it, all scored in float64 and sorted; those that hold an answer of the
    question leave its ranking."""
    robustness.run(arm, tmp_path / "out", SETTINGS)
    rows = list(tables.rows(arm.near_duplicates / "near_duplicates.parquet", NearDuplicate))
    rows.sort(key=lambda row: row.number)
    third = {row.question_id: row.passage_id for row in tables.rows(arm.positives / "positives.parquet", Positive)}
    corpus = small.passages()
    added = [Passage(f"+{i}", row.title, row.text, None) for i, row in enumerate(rows) if row.number < COUNTS[-1]]
    tables.write(tmp_path / "added.parquet", Passage, added)
    encode(
        tmp_path / "added.parquet", arm.model, tmp_path / "added", settings=SETTINGS.encode, hardware=SETTINGS.hardware
    )
    vectors = np.concatenate(
        [Vectors(folder).take(np.arange(n)) for folder, n in
         ((arm.ranking.with_name("vectors"), len(corpus)), (tmp_path / "added", len(added)))]
    )  # fmt: skip
    encoder = load(arm.model, "question")
    asked = QUESTIONS[1:]
    vectors_of = embed(encoder, encoder.question_ids([q.question for q in asked]))
    changed = False
    for count in COUNTS:
        hits = np.zeros((len(asked), EVALUATE.depth), np.bool_)
        for i, question in enumerate(asked):
            scores = (vectors.astype(np.float64) @ vectors_of[i].astype(np.float64)).astype(np.float32)
            kept = [
                row
                for row in np.lexsort((np.arange(len(scores)), -scores)).tolist()
                if row < len(corpus)
                or (
                    rows[row - len(corpus)].number < count
                    and not has_answer(question.answers, rows[row - len(corpus)].text, question.answer_kind)
                )
            ]
            for rank, row in enumerate(kept[: EVALUATE.depth]):
                text = corpus[row].text if row < len(corpus) else ""
                by_id = row < len(corpus) and corpus[row].id == third[question.id]
                hits[i, rank] = has_answer(question.answers, text, question.answer_kind) if question.answers else by_id
            changed |= any(row >= len(corpus) for row in kept[:5])
        found = {(o.question_id, o.metric): o.value for o in outcomes(tmp_path / "out" / f"{count}.parquet")}
        for k in EVALUATE.top_k:
            assert [found[q.id, f"top{k}"] for q in asked] == hits[:, :k].any(axis=1).tolist()
        first = [1 / (1 + int(row.argmax())) if row.any() else 0 for row in hits]
        assert [found[q.id, "mrr10"] for q in asked] == pytest.approx(first)
    assert changed
    by_count = [outcomes(tmp_path / "out" / f"{n}.parquet") for n in COUNTS]
    drop = [np.mean([o.value for o in of_count if o.metric == "mrr10"]) for of_count in by_count]
    assert drop[2] < drop[0]


def test_what_holds_an_answer_of_a_question_stays_out_of_its_ranking(arm, tmp_path, monkeypatch):
    """Those of b hold the answer of a; d has no answer that they could hold."""
    rows = sorted(tables.rows(arm.near_duplicates / "near_duplicates.parquet", NearDuplicate), key=lambda r: r.number)
    owners = [row.question_id for row in rows if row.number < COUNTS[-1]]
    found = {}

    def noted(*arguments, joins, **options):
        everyone = np.arange(len(owners))
        found.update({asked.id: joins(i, everyone).tolist() for i, asked in enumerate(QUESTIONS[1:])})
        return displacements(*arguments, joins=joins, **options)

    monkeypatch.setattr(robustness, "displacements", noted)
    robustness.run(arm, tmp_path / "out", SETTINGS)
    assert found["a"] == [owner != "b" for owner in owners]
    assert all(found["d"])


def test_only_near_duplicates_that_join_are_encoded(arm, tmp_path, monkeypatch):
    encoded = []

    def counted(passages, *arguments, **options):
        encoded.append(tables.count(passages, Passage))
        return encode(passages, *arguments, **options)

    monkeypatch.setattr(robustness, "encode", counted)
    assert robustness.run(arm, tmp_path / "out", SETTINGS) == 10
    few = SETTINGS._replace(robustness=Robustness(counts=[0, 1]))
    assert robustness.run(arm, tmp_path / "few", few) == 4
    assert encoded == [10, 4]
    assert (tmp_path / "few" / "1.parquet").read_bytes() == (tmp_path / "out" / "1.parquet").read_bytes()


def test_no_near_duplicates_change_nothing(arm, tmp_path):
    tables.write(tmp_path / "none" / "near_duplicates.parquet", NearDuplicate, [])
    files.write_json(tmp_path / "none" / "report.json", REPORTED)
    assert robustness.run(arm._replace(near_duplicates=tmp_path / "none"), tmp_path / "out", SETTINGS) == 0
    assert (tmp_path / "out" / "3.parquet").read_bytes() == (tmp_path / "out" / "0.parquet").read_bytes()


# The report

VALUES = {  # arm -> n -> top1 of q1 to q4
    "dpr": {0: [1, 1, 0, 1], 1: [1, 0, 0, 1], 3: [0, 0, 0, 1]},
    "eadpr": {0: [1, 1, 1, 0], 1: [1, 1, 1, 0], 3: [1, 1, 0, 0]},
}
MADE_BY_RULES = {"generator": "rules", "questions": 4, "with_all": 3, "with_none": 1, "near_duplicates": 9}


@pytest.fixture
def measured(tmp_path):
    for arm_name, by_count in VALUES.items():
        own = tmp_path / "robustness" / "rules" / arm_name
        for n, of_count in by_count.items():
            write_outcomes(own / f"{n}.parquet", {"top1": of_count, "mrr3": of_count})
        files.write_json(own / MADE, MADE_BY_RULES | {"dropped": {"shared": 2}})
    return tmp_path


def reported(folder: Path) -> str:
    sets = Sets(train=[], evaluate=["main/dev"], annotator=[])
    own = REPORT.model_copy(update={"robustness": MeasuredBy(by=["rules"], trainings=REPORT.trainings)})
    told = (folder / "out", pd.DataFrame())
    return "\n\n".join(report_sections.of_robustness(folder, own, Robustness(counts=COUNTS), sets, *told))


def test_the_report_by_hand(measured):
    """dpr falls from 3 of 4 to 1, eadpr from 3 to 2; REPORT's columns that are not measured have no column."""
    text = reported(measured)
    assert "9 near-duplicates of 4 questions; 3 have all that were asked for, 1 have none. Dropped: 2 shared." in text
    assert "with Holm's correction over the table (8 in all):" in text
    lines = cells(text)
    assert lines[0] == ["%, near-duplicates per question", "top-1", "MRR@3"]
    shown = {line[0]: line[1] for line in lines}
    assert [shown[f"dpr, {n}"] for n in COUNTS] == ["75.0", "50.0", "25.0"]
    assert [shown[f"eadpr, {n}"] for n in COUNTS] == ["75.0", "75.0", "50.0"]
    estimates = {name: cell.split()[0] for name, cell in shown.items() if "[" in cell}
    assert estimates == {
        "dpr: 3 − 0": "-50.0",
        "eadpr: 3 − 0": "-25.0",
        "eadpr − dpr at 3": "+25.0",
        "change of eadpr − change of dpr": "+25.0",
    }


def test_the_curve_is_in_a_csv_and_an_svg(measured):
    reported(measured)
    with (measured / "out" / "robustness-rules.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    curve = [(row["near_duplicates"], row["share"]) for row in rows if (row["arm"], row["metric"]) == ("dpr", "top1")]
    assert curve == [("0", "0.750000"), ("1", "0.500000"), ("3", "0.250000")]
    svg = (measured / "out" / "robustness-rules.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_the_stages_run_as_commands(arm, tmp_path):
    names = ("robustness", "evaluate", "encode", "sets", "machine")
    sections = dict(zip(names, (section.model_dump() for section in SETTINGS), strict=True))
    config = small.write_config(tmp_path / "robustness.json", **sections)
    folders = {"--records": arm.records, "--positives": arm.positives, "--ranking": arm.ranking, "--model": arm.model}
    options = {"--config": config, **folders, "--duplicates": arm.near_duplicates}
    commands = [
        ("robustness", options | {"--out": tmp_path / "all" / name}, tmp_path / "c") for name in ("dpr", "eadpr")
    ]
    done = small.stages(*commands)
    assert done.returncode == 0, done.stderr
    assert "robustness: dpr against 10 near-duplicates" in done.stdout
    assert files.tree_sha256(tmp_path / "all" / "dpr") == files.tree_sha256(tmp_path / "all" / "eadpr")
    assert json.loads((tmp_path / "all" / "dpr" / MADE).read_text()) == REPORTED
