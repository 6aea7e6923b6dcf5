"""The stages of readers as commands, on the toy collection, and the table that compares rankings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eadpr import files, tables
from eadpr.config import Sets
from eadpr.evaluation import reading_report
from eadpr.evaluation.config import ReportArms
from eadpr.reading.config import Read
from eadpr.records import Outcome, Ranked
from eadpr.supervision.denoise import PassageScore
from tests.evaluated import starred
from tests.reading_toy import READ, READER, write_reading
from tests.small_collection import MACHINE, SETS, stages, write_config
from tests.toy_records import promoted
from tests.training_toy import NAMES

REPORT = {
    "columns": ["top1"],
    "differences": ["top1"],
    "by_type": [],
    "baseline": "dpr",
    "compare": {},
    "resamples": 200,
    "confidence": 0.95,
    "seed": 0,
    "bins": 10,
    "trainings": {"bm25": ["bm25"], "dpr": ["dpr"], "eadpr": ["eadpr", "eadpr2"]},
    "fused": [],
}
READ_ONE = Read(top_k=[5], questions=None, seed=0, answer_tokens=10, output_tokens=10)


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
    config = write_config(tmp_path / "evaluate.json", read=READ.model_dump(), sets=SETS)
    measure = {"--config": config, "--records": toy / "records", "--reading": tmp_path / "reading"}
    measure |= {"--outcomes": tmp_path / "outcomes.parquet", "--metrics": tmp_path / "x" / "bm25.json"}
    gold = {"--config": write_config(tmp_path / "gold.json", sets=SETS), "--records": toy / "records"}
    gold |= {"--positives": toy / "positives", "--out": tmp_path / "gold"}
    few = {"read": READ.model_dump() | {"questions": 2}, "sets": SETS}
    read_few = read | {"--config": write_config(tmp_path / "few.json", **few, machine=MACHINE)}
    read_few |= {"--ranking": tmp_path / "gold", "--out": tmp_path / "few"}
    measure_few = measure | {"--config": write_config(tmp_path / "evaluate_few.json", **few)}
    measure_few |= {"--reading": tmp_path / "few", "--metrics": tmp_path / "x" / "gold.json"}
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
    found = json.loads((tmp_path / "x" / "bm25.json").read_text())["toy/dev"]
    assert {f"{kind}_{k}" for kind in ("em", "f1") for k in READ.top_k} <= set(found)
    of_few = json.loads((tmp_path / "x" / "gold.json").read_text())["toy/dev"]
    assert (of_few["n"], of_few["n_read"]) == (2, 2)
    assert of_few["em_1"] == of_few["em_4"]  # a question has one positive
    first = files.tree_sha256(tmp_path / "reading")
    assert stages(("read", read, tmp_path / "other")).returncode == 0
    assert files.tree_sha256(tmp_path / "reading") == first


def write_outcomes(folder: Path, metrics: Path, found: dict[str, list[float]], aa: dict[str, float]) -> None:
    """Per ranking the exact match of each question; F1 is the same."""
    for name, values in found.items():
        rows = [Outcome("toy/dev", f"q{i}", "who", m, v) for m in READ_ONE.metrics for i, v in enumerate(values)]
        tables.write(folder / f"{name}.parquet", Outcome, rows)
        files.write_json(metrics / f"{name}.json", {"toy/dev": {"aa": aa[name], "n_aa": 9} if name in aa else {}})


def test_the_table_of_rankings_by_hand(tmp_path):
    """bm25 2 of 4; dpr 1 of 4; eadpr's trainings 3 and 4 of 4, so 87.5 %, 62.5 points above dpr."""
    outcomes, metrics, out = tmp_path / "x", tmp_path / "metrics", tmp_path / "out"
    found = {"bm25": [1, 1, 0, 0], "dpr": [1, 0, 0, 0], "eadpr": [1, 1, 1, 0], "eadpr2": [1, 1, 1, 1]}
    write_outcomes(outcomes, metrics, found, {"dpr": 0.5, "eadpr": 0.7, "eadpr2": 0.8})
    settings, sets = ReportArms.model_validate(REPORT), Sets(train=[], evaluate=["toy/dev"], annotator=[])
    markdown = reading_report.run(outcomes, metrics, out, settings=settings, read=READ_ONE, sets=sets)
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown.splitlines() if "|" in line]
    assert markdown.startswith("# Answers of the reader x\n")
    assert "\n## toy/dev: 4 questions\n" in markdown
    assert lines[0] == ["%", "EM, top-5", "F1, top-5", "AA"]
    assert lines[2:5] == [
        ["bm25", "50.0", "50.0", "–"],
        ["dpr", "25.0", "25.0", "50.0 (n=9)"],
        ["eadpr", "87.5", "87.5", "75.0 (n=9)"],
    ]
    differences = {row[0]: row[1] for row in lines[7:]}
    assert set(differences) == {"bm25 − dpr", "eadpr − dpr"}
    assert differences["eadpr − dpr"].startswith("+62.5 [")
    assert (out / "table.md").read_text() == markdown
    assert (out / "em.csv").read_text().splitlines() == [
        "passages,em,arm,question_set",
        "5,0.500000,bm25,toy/dev",
        "5,0.250000,dpr,toy/dev",
        "5,0.875000,eadpr,toy/dev",
    ]
    assert (out / "em.svg").read_text().startswith("<?xml")
    (outcomes / "old.parquet").write_bytes(b"")
    assert reading_report.remove_inactive(outcomes, settings) == [outcomes / "old.parquet"]
    alone = settings.model_copy(update={"trainings": {"eadpr": ["eadpr"]}})
    assert "difference" not in reading_report.run(outcomes, metrics, out, settings=alone, read=READ_ONE, sets=sets)


def test_what_holds_over_all_rankings_has_a_star(tmp_path):
    """Seven of 20 questions, p = 1/64, hold for two metrics in a table of their own: 1/32. In one of three rows `all`
    holds, and of the others no more than four can: 4/64."""
    found = {"dpr": [0] * 20, "all": [1] * 20, "seven": [1] * 7 + [0] * 13, "same": [0] * 20}
    write_outcomes(tmp_path / "x", tmp_path / "metrics", found, {})

    def reported(*rankings: str) -> str:
        changes = {"trainings": {name: [name] for name in rankings}, "resamples": 10_000}
        settings, sets = ReportArms.model_validate(REPORT | changes), Sets(train=[], evaluate=["toy/dev"], annotator=[])
        folders = tmp_path / "x", tmp_path / "metrics", tmp_path / "out"
        return reading_report.run(*folders, settings=settings, read=READ_ONE, sets=sets)

    assert "with Holm's correction over the table (6 in all):" in reported(*found)
    assert starred(reported(*found)) == ["all − dpr"]
    assert starred(reported("dpr", "seven")) == ["seven − dpr"]


def test_gold_is_a_row_without_awareness_and_the_sample_is_named(tmp_path):
    outcomes, metrics = tmp_path / "x", tmp_path / "metrics"
    write_outcomes(outcomes, metrics, {"dpr": [1, 0], "gold": [1, 1]}, {"dpr": 0.5})
    (metrics / "gold.json").unlink()
    settings = ReportArms.model_validate(REPORT | {"trainings": {"dpr": ["dpr"], "gold": ["gold"]}})
    options = {"settings": settings, "read": READ_ONE.model_copy(update={"questions": 1000})}
    sets = Sets(train=[], evaluate=["toy/dev"], annotator=[])
    markdown = reading_report.run(outcomes, metrics, tmp_path / "out", **options, sets=sets)
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in markdown.splitlines() if "|" in line]
    assert "At most 1,000 questions of each set are read, the same from every ranking.\n" in markdown
    assert lines[3] == ["gold", "100.0", "100.0", "–"]
    assert lines[-1][0] == "gold − dpr"
    assert lines[-1][1].startswith("+50.0 [")
