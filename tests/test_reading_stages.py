"""The stages of readers as commands, on the toy collection, and the table that compares rankings."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from eadpr import tables
from eadpr.config import Sets
from eadpr.evaluation import report_sections
from eadpr.evaluation.config import MeasuredBy
from eadpr.evaluation.summary import KEYS
from eadpr.records import Ranked
from eadpr.supervision.denoise import PassageScore
from tests.evaluated import READ as READ_ONE
from tests.evaluated import REPORT, cells, summary, write_outcomes
from tests.reading_toy import READ, READER, write_reading
from tests.small_collection import MACHINE, SETS, stages, write_config
from tests.toy_records import promoted
from tests.training_toy import NAMES

ARMS = {"bm25": ["bm25"], "dpr": ["dpr", "dpr2"], "eadpr": ["eadpr", "eadpr2"]}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_reading(tmp_path_factory.mktemp("toy"))


def test_reader_read_and_evaluate_reading_as_commands(toy, tmp_path):
    sections = {"reader": READER.model_dump() | {"steps": 2}, "reader_files": {"sha256": {}}, "machine": MACHINE}
    config = write_config(tmp_path / "reader.json", **sections)
    inputs = {"--records": toy / "records", "--ranking": toy / "ranking"}
    reader = inputs | {"--config": config, "--positives": toy / "positives", "--init": toy / "base"}
    reader |= {"--out": tmp_path / "readers/x", "--log": tmp_path / "log"}
    sections = {"read": READ.model_dump(), "sets": SETS, "machine": MACHINE}
    read = inputs | {"--config": write_config(tmp_path / "read.json", **sections)}
    read |= {"--reader": tmp_path / "readers/x", "--out": tmp_path / "reading"}
    scores = inputs | {"--config": write_config(tmp_path / "scores.json", machine=MACHINE)}
    scores |= {"--positives": toy / "positives", "--out": tmp_path / "scores.parquet"}
    scores |= {"--first": tmp_path / "readers/x", "--second": tmp_path / "readers/x"}
    half = write_config(tmp_path / "denoise.json", denoise={"below": 0.5, "above": 0.5})
    denoise = {"--config": half, "--positives": toy / "positives", "--ranking": toy / "ranking"}
    denoise |= {"--scores": tmp_path / "scores.parquet", "--out": tmp_path / "clean"}
    config = write_config(tmp_path / "evaluate.json", reader=READER.model_dump(), read=READ.model_dump(), sets=SETS)
    measure = {"--config": config, "--records": toy / "records", "--reading": tmp_path / "reading"}
    measure |= {"--positives": toy / "positives"}
    measure |= {"--out": tmp_path / "x" / "bm25.parquet"}
    gold = {"--config": write_config(tmp_path / "gold.json", sets=SETS), "--records": toy / "records"}
    gold |= {"--positives": toy / "positives", "--out": tmp_path / "gold"}
    few = {"read": READ.model_dump() | {"questions": 2}, "sets": SETS}
    read_few = read | {"--config": write_config(tmp_path / "few.json", **few, machine=MACHINE)}
    read_few |= {"--ranking": tmp_path / "gold", "--out": tmp_path / "few"}
    measure_few = measure | {
        "--config": write_config(tmp_path / "evaluate_few.json", reader=READER.model_dump(), **few)
    }
    measure_few |= {"--reading": tmp_path / "few", "--out": tmp_path / "x" / "gold.parquet"}
    cache = tmp_path / "cache"
    commands = [("reader", reader), ("read", read), ("evaluate_reading", measure), ("score_passages", scores)]
    commands += [("denoise", denoise), ("gold_ranking", gold), ("read", read_few), ("evaluate_reading", measure_few)]
    done = stages(*((name, options, cache) for name, options in commands))
    assert done.returncode == 0, done.stderr
    clean = list(tables.rows(tmp_path / "clean" / "train.parquet", Ranked))
    assert done.stdout.splitlines() == [
        "reader: 2 steps",
        "read: x answered 5 questions from ranking",
        "evaluate_reading: x on bm25: 5 questions of toy/dev",
        "score_passages: 60 passages of ranking",
        f"denoise: {len(clean)} passages of ranking stay",
        "gold_ranking: positives of 5 questions",
        "read: x answered 2 questions from gold",
        "evaluate_reading: x on gold: 2 questions of toy/dev",
    ]
    score = {row[:2]: row.score for row in tables.rows(tmp_path / "scores.parquet", PassageScore)}
    own = {(f"q{i}", f"p{i}") for i in range(len(NAMES))}
    ranked = list(tables.rows(toy / "ranking" / "train.parquet", Ranked))
    assert clean == [row for row in ranked if row[:2] in own or score[row[:2]] < 0.5]
    new = {pair for pair in score.keys() - own if score[pair] > 0.5}
    assert {(question_id, i) for question_id, ids in promoted(tmp_path / "clean").items() for i in ids} == new
    assert 15 < len(clean) < len(ranked), "own positives, and some others but not all"
    assert new
    found = summary(tmp_path / "x" / "bm25.parquet", ["toy/dev"])["toy/dev"]
    assert {f"{kind}_{k}" for kind in ("em", "f1") for k in READ.top_k} <= set(found)
    of_few = summary(tmp_path / "x" / "gold.parquet", ["toy/dev"])["toy/dev"]
    assert (of_few["n"], of_few["n_read"]) == (2, 2)
    assert of_few["em_1"] == of_few["em_4"]  # a question has one positive


def reported(folder: Path, found: dict[str, list[float]], arms: dict[str, list[str]], aa=None, **changes) -> str:
    """Of a reader x: the exact match of each question from each ranking; F1 is the same. `aa`, of trainings, is
    their controlled AA too."""
    for name, values in found.items():
        write_outcomes(
            folder / f"reading/x/{name}.parquet", {"read": [1] * len(values), "em_5": values, "f1_5": values}
        )
    aware = [(arm, metric, share) for arm, share in (aa or {}).items() for metric in ("aa", "controlled_aa")]
    rankings = [(arm, "main/dev", "", "", metric, share, 9) for arm, metric, share in aware]
    rankings = pd.DataFrame(rankings, columns=[*KEYS, "mean", "n"])
    settings = REPORT.model_copy(update={"reading": MeasuredBy(by=["x"], trainings=arms), "resamples": 10_000})
    sets, read = Sets(train=[], evaluate=["main/dev"], annotator=[]), READ_ONE.model_copy(update=changes)
    return "\n\n".join(report_sections.of_readers(folder, settings, read, sets, folder / "out", rankings))


def test_the_table_of_rankings_by_hand(tmp_path):
    """bm25 2 of 4; each of dpr's trainings 1 of 4; eadpr's 3 and 4 of 4, so 87.5 %, 62.5 points above dpr."""
    found = {"bm25": [1, 1, 0, 0], "dpr": [1, 0, 0, 0], "eadpr": [1, 1, 1, 0], "eadpr2": [1, 1, 1, 1]}
    found["dpr2"] = found["dpr"]
    markdown = reported(tmp_path, found, ARMS, {"dpr": 0.5, "dpr2": 0.5, "eadpr": 0.7, "eadpr2": 0.8})
    assert markdown.startswith("# Answers of the reader x\n")
    assert "\n## main/dev: 4 questions\n" in markdown
    assert "correction over the table (4 in all):" in markdown  # BM25 has no seed that could be another
    header, *rows = cells(markdown)
    assert header == ["%", "EM, top-5", "F1, top-5", "AA", "placebo (words)", "controlled AA"]
    assert rows[:3] == [
        ["bm25", "50.0", "50.0", "–", "–", "–"],
        ["dpr", "25.0", "25.0", "50.0 (n=9)", "–", "50.0 (n=9)"],
        ["eadpr", "87.5", "87.5", "75.0 (n=9)", "–", "75.0 (n=9)"],
    ]
    estimates = [(row[0], row[1].split()[0]) for row in rows if "[" in row[1]]
    means = [("bm25 − dpr", "+25.0"), ("eadpr − dpr", "+62.5")]
    assert estimates[:3] == [*means, ("bm25 − dpr, mean", "+25.0")]
    assert estimates[3:] == [
        ("bm25 − dpr", "+25.0"),
        ("bm25 − dpr2", "+25.0"),
        ("eadpr − dpr, mean", "+62.5"),
        ("eadpr − dpr", "+50.0"),
        ("eadpr2 − dpr2", "+75.0"),
    ]
    assert (tmp_path / "out" / "em-x.csv").read_text().splitlines() == [
        "passages,em,arm,question_set",
        "5,0.500000,bm25,main/dev",
        "5,0.250000,dpr,main/dev",
        "5,0.875000,eadpr,main/dev",
    ]
    assert (tmp_path / "out" / "em-x.svg").read_text().startswith("<?xml")
    assert json.loads((tmp_path / "out/metrics/reading/x/eadpr2.json").read_text())["main/dev"]["em_5"] == 1
    assert "difference" not in reported(tmp_path, found, {"eadpr": ["eadpr"]})


def test_gold_is_a_row_without_awareness_and_the_sample_is_named(tmp_path):
    arms = {"dpr": ["dpr"], "gold": ["gold"]}
    markdown = reported(tmp_path, {"dpr": [1, 0], "gold": [1, 1]}, arms, {"dpr": 0.5}, questions=1000)
    assert "At most 1,000 questions of each set are read, the same from every ranking.\n" in markdown
    rows = cells(markdown)
    assert rows[2] == ["gold", "100.0", "100.0", "–", "–", "–"]
    assert rows[-1][0] == "gold − dpr"
    assert rows[-1][1].startswith("+50.0 [")
