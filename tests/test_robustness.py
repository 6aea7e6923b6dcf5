"""Near-duplicates in the corpus: ranks against a naive ranking of everything, and the report's numbers by hand."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.outcomes import MADE
from eadpr.report.config import MeasuredBy
from eadpr.robustness.config import Measurement, NearDuplicate
from eadpr.robustness.evaluate import Joined, run
from eadpr.robustness.report import report_robustness
from eadpr.runtime import files
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search import late
from eadpr.search.config import Encode, Retrieve
from eadpr.search.encode import embed, encode
from eadpr.search.exact import Hits
from eadpr.search.retrieve import retrieve
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import Outcome, Passage, Positive, Ranked
from eadpr.text.answers import has_answer
from eadpr.training.config import AUTO
from eadpr.training.encoder import load
from tests import small_collection as small
from tests.evaluated import REPORT, cells, write_outcomes
from tests.test_late import in_sentences, naive_scores

pytestmark = pytest.mark.robustness

COUNTS, CANDIDATES = [0, 1, 3], 1
REPORTED = {"generator": "removed", "near_duplicates": 12}


# The stage on a small collection with a random encoder

PASSAGES = [row._replace(text=in_sentences(row.text)) for row in small.passages()]
EVALUATE = Evaluate(top_k=[1, 2, 5], mrr_at=10, ndcg_at=5, recall_at=[5], all_at=[2])
QUESTIONS = [
    small.question("train", "where", ["w1"]), small.question("a", "where was w1", ["w1"]),
    small.question("b", "w2 w3 capital", ["w2 w3", "w7"]), small.question("c", "ada born", [r"w1\d"], "regex"),
    small.question("d", "w5 w6", []), small.question("e", "w8 was born w9", []),
]  # fmt: skip
ENCODE, HARDWARE, SETS = Encode(**small.ENCODE), Machine(**small.MACHINE), Sets(**small.SETS)
SETTINGS = (Measurement(counts=COUNTS, candidates=CANDIDATES), EVALUATE, ENCODE, SETS, HARDWARE)


def write_near_duplicates(folder: Path, best_of_a: str) -> None:
    """Up to four per question; `a` has one. Those of b hold the answer of a; they and those of d have words of their
    questions. The second of b is like the best passage for a, the first of d scores as one of the corpus."""
    rng = np.random.default_rng(5)
    counts, rows = {"a": 1, "b": 4, "c": 4, "d": 3}, []
    for question_id, count in counts.items():
        for number in range(count):
            text = in_sentences(" ".join(rng.choice(small.WORDS[20:40], rng.integers(2, 12))))
            text += {"b": " w1 w3", "d": " w5 w6"}.get(question_id, "")
            rows.append(NearDuplicate(question_id, "p3", number, "removed", "w2" if number else "", text))
    same = next(passage for passage in PASSAGES if "w5" in passage.text.split())
    best = next(passage for passage in PASSAGES if passage.id == best_of_a)
    copied = {("d", 0): (same.title, same.text), ("b", 1): (best.title, f"{best.text} w1")}
    for i, row in enumerate(rows):
        title, text = copied.get((row.question_id, row.number), (row.title, row.text))
        rows[i] = row._replace(title=title, text=text)
    tables.write(folder / "near_duplicates.parquet", NearDuplicate, rows)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    records = small.write_records(folder / "records", PASSAGES, QUESTIONS, train=1)
    model = small.write_model(folder / "model")
    encode(records / "passages.parquet", model, folder / "vectors", settings=ENCODE, hardware=HARDWARE)
    settings = Retrieve(**small.RETRIEVE)
    retrieve(records, model, folder / "vectors", folder / "ranking", settings=settings, sets=SETS, hardware=HARDWARE)
    ranked = list(tables.rows(folder / "ranking" / "evaluate.parquet", Ranked))
    best_of_a = next(row.passage_id for row in ranked if row.question_id == "a")
    write_near_duplicates(folder / "near", best_of_a)
    files.write_json(folder / "near" / "report.json", REPORTED)
    third = [Positive(row.question_id, row.passage_id, "given", None) for row in ranked if row.rank == 3]
    positives = small.write_positives(folder / "positives", third, [])
    return SimpleNamespace(
        records=records, positives=positives, ranking=folder / "ranking", model=model, near_duplicates=folder / "near"
    )


def first_ranks(order: list[int], question, added: list[NearDuplicate], count: int) -> list[int]:
    """The rows that join, best first and to the last rank, of the corpus with all that was added behind it."""
    size = len(PASSAGES)

    def joins(near: NearDuplicate) -> bool:
        return near.number < count and not has_answer(question.answers, near.text, question.answer_kind)

    return [row for row in order if row < size or joins(added[row - size])][: EVALUATE.depth]


def check_rankings(arm, folder: Path, expected: list[list[list[int]]]) -> None:
    """Rankings of the stage against ranks of rows, for each count but 0; rows behind the corpus's were added."""
    joined, corpus = Joined(QUESTIONS[1:], arm.ranking, arm.model, EVALUATE.depth), PASSAGES
    joined.add(arm.near_duplicates, SETTINGS[0], folder, ENCODE, HARDWARE)
    for ranked, count in zip(expected[1:], COUNTS[1:], strict=True):
        rows = list(joined.rank(count))
        by_question = zip(QUESTIONS[1:], ranked, strict=True)
        assert [row[:3] for row in rows] == [
            (question.id, corpus[row].id, rank)
            for question, order in by_question
            for rank, row in enumerate(order, start=1)
            if row < len(corpus)
        ]


def check_outcomes(positives: Path, path: Path, ranked: list[list[int]]) -> None:
    """The outcomes are those of these ranks, a question each; one without answers is judged by passage id."""
    third = {row.question_id: row.passage_id for row in tables.rows(positives / "positives.parquet", Positive)}
    corpus, outcomes = PASSAGES, {(o.question_id, o.metric): o.value for o in tables.rows(path, Outcome)}
    for question, rows in zip(QUESTIONS[1:], ranked, strict=True):
        passages = [corpus[row] if row < len(corpus) else None for row in rows]
        hits = [
            passage is not None
            and (
                has_answer(question.answers, passage.text, question.answer_kind)
                or (not question.answers and passage.id == third.get(question.id))
            )
            for passage in passages
        ]
        first = 1 / (1 + hits.index(True)) if True in hits else 0
        assert outcomes[question.id, "mrr10"] == pytest.approx(first)


def match_by(arm, unit: str, folder: Path) -> SimpleNamespace:
    """The arm with another unit: a ranking by the parts of all passages."""
    model = shutil.copytree(arm.model, folder / "model")
    files.write_json(model / "encoder.json", files.read_json(model / "encoder.json") | {"unit": unit})
    settings = Retrieve(**small.RETRIEVE | {"candidates": len(PASSAGES)})
    paths = (arm.records, model, arm.ranking.with_name("vectors"), folder / "ranking")
    retrieve(*paths, settings=settings, sets=SETS, hardware=HARDWARE)
    return SimpleNamespace(**vars(arm) | {"model": model, "ranking": folder / "ranking"})


@pytest.mark.parametrize("unit", ["passage", "sentence", "token"])
@torch.no_grad()
def test_with_near_duplicates_the_outcomes_are_those_of_ranking_everything(arm, tmp_path, monkeypatch, unit):
    """The corpus, then the near-duplicates, scored in float64 and sorted, without those that hold an answer; by parts
    with each question's best CANDIDATES near-duplicates of those that join, scored as if in another batch."""
    arm, rescore = match_by(arm, unit, tmp_path / unit), late.rescore
    monkeypatch.setattr(late, "rescore", lambda *a, **k: Hits((hits := rescore(*a, **k)).rows, hits.scores + 8e-4))
    run(*SETTINGS, **vars(arm), out=tmp_path / "out")
    rows = tables.rows(arm.near_duplicates / "near_duplicates.parquet", NearDuplicate)
    added = sorted((row for row in rows if row.number < COUNTS[-1]), key=lambda row: row.number)
    passages = [Passage(f"+{i}", row.title, row.text, None) for i, row in enumerate(added)]
    tables.write(tmp_path / "added.parquet", Passage, passages)
    encode(tmp_path / "added.parquet", arm.model, tmp_path / "added", settings=ENCODE, hardware=HARDWARE)
    vectors = np.concatenate(
        [Vectors(folder).take(np.arange(n)) for folder, n in
         ((arm.near_duplicates.with_name("vectors"), len(PASSAGES)), (tmp_path / "added", len(added)))]
    )  # fmt: skip
    encoder = load(arm.model, "question", AUTO)
    vectors_of = embed(encoder, encoder.question_ids([q.question for q in QUESTIONS[1:]]))
    by_vector = scores = (vectors_of.astype(np.float64) @ vectors.astype(np.float64).T).astype(np.float32)
    if unit != "passage":
        scores = naive_scores(arm.model, unit, [q.question for q in QUESTIONS[1:]], [*PASSAGES, *passages])[0].numpy()
    orders, expected = [np.lexsort((np.arange(len(values)), -values)).tolist() for values in scores], []
    for count in COUNTS:
        joining = [len(PASSAGES) + i for i, row in enumerate(added) if row.number < count]
        most = len(joining) if unit == "passage" else CANDIDATES
        left_out = [sorted(joining, key=lambda row: -values[row])[most:] for values in by_vector]
        by_question = zip(orders, left_out, QUESTIONS[1:], strict=True)
        ranked = [first_ranks([row for row in o if row not in out], q, added, count) for o, out, q in by_question]
        check_outcomes(arm.positives, tmp_path / "out" / f"{count}.parquet", ranked)
        expected.append(ranked)
    check_rankings(arm, tmp_path / "joined", expected)
    by_count = [tables.rows(tmp_path / "out" / f"{n}.parquet", Outcome) for n in COUNTS]
    drop = [np.mean([o.value for o in of_count if o.metric == "mrr10"]) for of_count in by_count]
    assert drop[2] < drop[0]


def test_a_generator_that_made_nothing_is_named(arm, tmp_path):
    tables.write(tmp_path / "none" / "near_duplicates.parquet", NearDuplicate, [])
    with pytest.raises(ValueError, match=r"is empty; take none out of robustness\.generators"):
        run(*SETTINGS, **vars(arm) | {"near_duplicates": tmp_path / "none"}, out=tmp_path / "out")


# The report

BEFORE = {"dpr": [1, 1, 0, 1], "eadpr": [1, 1, 1, 0], "eadpr-2": [1, 0, 1, 1]}
AFTER = {  # top1 of q1 to q4 with one and with three
    "dpr": ([1, 0, 0, 1], [0, 0, 0, 1]),
    "eadpr": ([1, 1, 1, 0], [1, 1, 0, 0]),
    "eadpr-2": ([1, 1, 1, 0], [1, 0, 0, 1]),
}
TRAININGS = {"dpr": ["dpr"], "eadpr": ["eadpr", "eadpr-2"]}
MADE_BY = {"questions": 4, "with_all": 3, "with_none": 1, "near_duplicates": 9, "dropped": {"shared": 2}}


def test_the_report_by_hand(tmp_path):
    """dpr falls from 3 of 4 to 1, both trainings of eadpr from 3 to 2; what is not measured has no column."""
    for arm_name, after in AFTER.items():
        folder = tmp_path / "robustness" / "removed" / arm_name
        for n, of_count in zip(COUNTS, (BEFORE[arm_name], *after), strict=True):
            write_outcomes(folder / f"{n}.parquet", {"top1": of_count, "mrr3": of_count})
        files.write_json(folder / MADE, MADE_BY)
    settings = REPORT.model_copy(update={"robustness": MeasuredBy(by=["removed"], trainings=TRAININGS)})
    sets = Sets(train=[], evaluate=["main/dev"], annotator=[])
    parts = report_robustness(tmp_path, settings, SETTINGS[0], sets, tmp_path / "out", pd.DataFrame())
    text = "\n\n".join(parts)
    assert "9 near-duplicates of 4 questions of all sets; 3 have all that were asked for, 1 have none. Dropped:" in text
    assert "(2 in all)" in text
    lines = cells(text)
    assert lines[0] == ["%, near-duplicates per question", "top-1", "MRR@3"]
    figures = {line[0]: line[1] for line in lines}
    assert [figures[f"dpr, {n}"] for n in COUNTS] == ["75.0", "50.0", "25.0"]
    assert [figures[f"eadpr, {n}"] for n in COUNTS] == ["75.0", "75.0", "50.0"]
    estimates = {name: cell.split()[0] for name, cell in figures.items() if "[" in cell}
    assert estimates == {
        "dpr: 3 − 0": "-50.0", "eadpr: 3 − 0": "-25.0", "eadpr − dpr at 3": "+25.0",
        "change of eadpr − change of dpr": "+25.0",
    }  # fmt: skip


def test_the_stages_run_as_commands(arm, tmp_path):
    names = ("robustness", "evaluate", "encode", "sets", "machine")
    sections = dict(zip(names, (section.model_dump() for section in SETTINGS), strict=True))
    config = small.write_config(tmp_path / "robustness.json", **sections)
    folders = {"--records": arm.records, "--positives": arm.positives, "--ranking": arm.ranking, "--model": arm.model}
    options = {"--config": config, **folders, "--duplicates": arm.near_duplicates}
    outs = [tmp_path / "all" / name for name in ("dpr", "eadpr")]
    commands = [("robustness", options | {"--out": out}, tmp_path / "c") for out in outs]
    done = small.stages(*commands)
    assert done.returncode == 0, done.stderr
    assert "robustness: dpr against 10 near-duplicates" in done.stdout
    assert files.tree_sha256(tmp_path / "all" / "dpr") == files.tree_sha256(tmp_path / "all" / "eadpr")
    assert json.loads((tmp_path / "all" / "dpr" / MADE).read_text()) == REPORTED
