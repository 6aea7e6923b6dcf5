"""The stage `report` from the files that `evaluate` writes for `tests.evaluated`; one page of it word for word."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.evaluation import kinds
from eadpr.evaluation.statistics import Interval
from eadpr.readers.report import report_readers
from eadpr.report import markdown, plots
from eadpr.report import tables as report_tables
from eadpr.report import write as report
from eadpr.report.config import MeasuredBy
from eadpr.report.inactive import delete_inactive_rows, remove_inactive
from eadpr.robustness.report import report_robustness
from eadpr.runtime import files
from eadpr.settings.resolve import load
from eadpr.storage import records, tables
from eadpr.storage.records import Distractor, Evidence, PairScore, Positive, Ranked, Span
from eadpr.two_hops.config import RankedPath
from eadpr.two_hops.evaluate import measure_paths
from eadpr.two_hops.retrieve import rank_passages
from tests import evaluated as toy
from tests.evaluated import COUNTS, EVALUATE, QUESTIONS, RANKINGS, READ, REPORT, SETS, cells

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = Path(__file__).with_name("report_golden.md")
NEGATIVES = {"with_negatives": 8, "without_negatives": 1, "negatives": 8, "source": "bm25"}
VALIDATED = {"validation_questions": 2, "validation_passages": 20}
DISTRACTORS = {"main/dev": {"pseudo": {"cut": {"pairs": 4, "kept": 3, "dropped": {"holds_answer": 1}}}}}
FORMS = {"dpr": {}, "eadpr": {"forms": {"cut": 5, "filled": 3}}}
EVIDENCE = {"main/dev": {"pseudo": {
    "n": 1000, "accuracy": 0.97, "accuracy_low": 0.957, "accuracy_high": 0.979, "chance": 0.2, "share_of_passage": 0.15,
}}, "more/dev": {"pseudo": {"n": 0}}}  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """All inputs of the stage, the report in the folder `small`, and its Markdown."""
    folder = tmp_path_factory.mktemp("report")
    toy.write_inputs(folder)
    for name in RANKINGS:
        toy.evaluated(folder, name)
    for arm, masked in (("dpr", 3.25), ("eadpr", 12.5)):
        trained = {"without_negatives": 1, "last_50_steps": {"masked": masked}}
        trained |= {"validation": {"average_rank": masked}, "validation_pool": "", **VALIDATED}
        toy.write_training(folder, arm, trained=trained, negatives=NEGATIVES, examples=FORMS[arm])
    files.write_json(folder / "distractors" / "report.json", DISTRACTORS)
    files.write_json(folder / "accuracy.json", EVIDENCE)
    return folder, reported(folder)


@pytest.fixture
def inputs(small, tmp_path):
    """The inputs, to be changed."""
    shutil.copytree(small[0], tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("small*"))
    return tmp_path


def changed(**changes):
    return REPORT.model_copy(update=changes)


def reported(inputs, out="small", *, settings=REPORT, more=()):
    return report.run(toy.report_inputs(inputs), inputs / out, inputs / f"{out}.json", settings, SETS, more)


def details(inputs, name):
    return json.loads((inputs / "small" / "metrics" / f"{name}.json").read_text())


def read_csv(inputs, name, **selected):
    points = pd.read_csv(inputs / "small" / f"{name}.csv", dtype=str, keep_default_na=False)
    for column, value in selected.items():
        points = points[points[column] == value]
    return points


def table(markdown, first, name="main/dev"):
    """Rows of the table of a question set with a header that begins with `first`."""
    for block in markdown.split(f"## {name}:")[1].split("\n## ")[0].split("\n\n"):
        rows = cells(block)
        if rows and rows[0][: len(first)] == first:
            return rows
    raise AssertionError(f"no table {first} in\n{markdown}")


def add_scores(inputs, arm, variant, scores):
    """Score a variant of the positives p1 of q1, p3 of q2 and p5 of q4."""
    path = inputs / "pairs" / f"{arm}.parquet"
    passages = {"q1": "p1", "q2": "p3", "q4": "p5"}
    added = [PairScore(question, passages[question], variant, score) for question, score in scores.items()]
    tables.write(path, PairScore, [*tables.rows(path, PairScore), *added])


def add_placebos(inputs):
    """The words of q1 and q2 score 1.5 and 1 with dpr, as p⁺ with eadpr; q4 has none. Of their texts q1's is longer
    than p1 without "Romulus", q2's shorter than p3 without "1969". So dpr's placebo rate is 50 (2 > 1.5, 1 = 1) and its
    controlled awareness too (1.5 > 1, 1 = 1), eadpr's are 0 (5 = 5, 1.5 = 1.5) and 100 (5 > 1, 1.5 > 1)."""
    placebos = [
        Distractor("q1", "p1", "placebo_words", 0, "cut", "It founded by Romulus.", [Span(3, 6)]),
        Distractor("q2", "p3", "placebo_words", 0, "cut", "In 1969.", [Span(8, 30)]),
    ]
    tables.write(inputs / "distractors" / "distractors.parquet", Distractor, placebos)
    for arm, scores in (("dpr", (1.5, 1.0)), ("eadpr", (5.0, 1.5))):
        add_scores(inputs, arm, "placebo_words", dict(zip(["q1", "q2"], scores, strict=True)))
        toy.evaluated(inputs, arm)


def add_training(inputs):
    """A second training of eadpr, `again`: BM25's ranking and dpr's scores. Top-1 75 and 50, deviation 17.7."""
    for folder in ("training", "negatives", "examples"):
        shutil.copytree(inputs / folder / "eadpr", inputs / folder / "again")
    shutil.copyfile(inputs / "pairs" / "dpr.parquet", inputs / "pairs" / "again.parquet")
    again = {"ranking": inputs / "rankings" / "bm25", "pairs": inputs / "pairs" / "again.parquet"}
    toy.evaluated(inputs, "again", **again)
    return {"dpr": ["dpr"], "eadpr": ["eadpr", "again"]}


def add_paths(inputs):
    """A row mdr. q4 needs p1 and p5, which the first two paths hold between them; as a ranking p5 is the fourth."""
    paths = [RankedPath("q4", 1, ["p1", "p2"], [2.0, 1.0], 3.0), RankedPath("q4", 2, ["p4", "p5"], [1.0, 1.0], 2.0)]
    tables.write(inputs / "ranking" / "paths" / "evaluate.parquet", RankedPath, paths)
    tables.write(inputs / "ranking" / "evaluate.parquet", Ranked, rank_passages(paths))
    files.write_text(inputs / "training" / "mdr" / plots.LOSS, "step\tloss\n1\t3.5\n2\t1.5\n")
    counts = {"questions": 7, "left_out": 2, "without_negatives": 0, "without_distractor": 3, "truncated": 4}
    files.write_json(inputs / "training" / "mdr" / "metrics.json", {"steps": 2, **counts, "without_placebo": 5})
    file = inputs / "ranking" / "paths" / "evaluate.parquet"
    more = partial(measure_paths, file, records=inputs / "records", all_at=[2, 4])
    settings = EVALUATE.model_copy(update={"all_at": [2, 4]})
    toy.evaluated(inputs, "mdr", ranking=inputs / "ranking", settings=settings, more=more)
    return {"fused": ["mdr"], "one_hop": {"mdr": "eadpr"}}


def test_the_whole_page_is_the_golden_one(inputs, monkeypatch):
    """Every table there is, of a rich collection. Look at each difference before you renew the file.

    By hand, of main/dev: macro top-1 of bm25 is the mean of 0, 0 (P19) and 1, 1 (P20), of eadpr of 1, 1 and 0, 1; its
    other training has bm25's ranking. The evidence of q1 is late, of q2 early; of q3 and q4 none is known.
    """
    relations = ["P19", "P19", "P20", "P20", None]
    questions = [question._replace(relation=name) for question, name in zip(QUESTIONS, relations, strict=True)]
    tables.write(inputs / "records" / "questions.parquet", records.Question, questions)
    for name in RANKINGS:
        toy.evaluated(inputs, name)
    add_placebos(inputs)
    trainings = add_training(inputs)
    by_kind = {"type": ["aa"], "position": ["top2"], "hop_type": ["all2"]}
    monkeypatch.setattr(report_tables, "FEWEST", 1)
    columns = ["top1", "top2", "recall2", "mrr3", "aa", "placebo_words", "controlled_aa"]
    settings = changed(trainings=trainings, columns=columns, by=by_kind, **add_paths(inputs))
    counts = inputs / "small" / "counts.md"
    page = reported(inputs, settings=settings) + counts.read_text(encoding="utf-8")
    assert page == GOLDEN.read_text(encoding="utf-8")
    figures = json.loads((inputs / "small.json").read_text())["dpr"]
    assert figures.keys() == {"top1", "top2", "recall2", "mrr3", "ndcg3", "controlled_aa"}, "what DVC compares"


def test_the_main_table_and_the_metrics_by_hand(small):
    """dpr of main/dev: hits of q1 to q4 at rank 2, none, 2, 3; eadpr: 1, 1, none, 1; bm25: 2, 2, 1, 1."""
    folder, page = small
    assert table(page, ["%"]) == [
        ["%", "top-1", "top-2", "MRR@3", "AA", "AA-evidence"],
        ["bm25", "50.0", "100.0", "75.0", "–", "–"],
        ["dpr", "0.0", "50.0", "33.3", "66.7 (n=3)", "50.0 (n=2)"],
        ["eadpr", "75.0", "75.0", "75.0", "100.0 (n=3)", "100.0 (n=2)"],
    ]
    assert not any(name in page for name in ("relations", "Two hops", "AA by what is removed"))
    assert markdown.as_count(347 / 3) == 115.67, "a mean over trainings"
    figures = json.loads((folder / "small.json").read_text())
    assert figures["evidence"] == {"accuracy": 0.97}
    ndcg = {name: details(folder, name)["main/dev"]["ndcg3"] for name in ("bm25", "dpr")}
    assert figures["bm25"] == {"top1": 0.5, "top2": 1.0, "mrr3": 0.75, "ndcg3": ndcg["bm25"]}
    assert figures["dpr"] == {"top1": 0.0, "top2": 0.5, "mrr3": 0.333333, "ndcg3": ndcg["dpr"]}


def test_the_middle_of_the_first_span_gives_the_position_of_evidence(tmp_path):
    """The passage has twelve characters, with thirds that begin at 0, 4 and 8; spans stand in the order of choice."""
    spans = [[(0, 4)], [(0, 7)], [(10, 12), (0, 2)], [(0, 8)], [(0, 12)], [(8, 11)], [(11, 12)]]
    ids = [f"q{i}" for i in range(len(spans))]
    evidence = []
    for question_id, chosen in zip(ids, spans, strict=True):
        scored = [records.ScoredSpan(*span, None) for span in ((0, 1), *chosen)]
        evidence.append(Evidence(question_id, "p", "gold", "", scored, [*range(1, len(scored))], None))
    rows = {
        "passages": [records.Passage("p", "", "éé 345678901", None)], "evidence": evidence,
        "questions": [QUESTIONS[0]._replace(id=i) for i in ids],
        "question_sets": [records.SetMember("a", "b", i) for i in ids],
        "positives": [Positive(i, "p", "given", None) for i in ids],
    }  # fmt: skip
    for name, of_table in rows.items():
        tables.write(tmp_path / f"{name}.parquet", type(of_table[0]), of_table)
    places = kinds.positions(tmp_path, tmp_path / "positives.parquet", tmp_path / "evidence.parquet", "gold", ["a/b"])
    assert places["position"].to_pylist() == ["early"] * 3 + ["middle"] * 2 + ["late"] * 2


def test_aa_by_strategy_and_the_scores_behind_it(inputs):
    """One of dpr's pairs of main/dev scores less without its sentence, one as much; of eadpr's both less. dpr with and
    without the evidence: 2 and 2.5, 3 and 2."""
    for arm, scores in (("dpr", (1.0, 1.0)), ("eadpr", (0.0, 0.5))):
        add_scores(inputs, arm, "sentence", dict(zip(["q1", "q2"], scores, strict=True)))
        add_scores(inputs, arm, "sentence_cut", {"q4": 3.0})
        toy.evaluated(inputs, arm)
    page = reported(inputs)
    assert table(page, ["arm", "AA"])[1:] == [
        ["dpr", "66.7 (n=3)", "50.0 (n=2)", "50.0 (n=2)"],
        ["eadpr", "100.0 (n=3)", "100.0 (n=2)", "100.0 (n=2)"],
    ]
    assert details(inputs, "dpr")["main/dev"]["n_aa_sentence_cut"] == 1
    assert table(page, ["arm", "behind"])[1:] == [
        ["dpr", "AA", "3", "2.00", "1.33", "0.67", "1.00", "0.00"],
        ["dpr", "AA-evidence", "2", "2.50", "2.25", "0.25", "1.00", "-0.50"],
        ["dpr", "AA-sentence", "2", "1.50", "1.00", "0.50", "1.00", "0.00"],
        ["eadpr", "AA", "3", "3.17", "1.33", "1.83", "1.83", "–"],
        ["eadpr", "AA-evidence", "2", "4.00", "1.25", "2.75", "2.75", "–"],
        ["eadpr", "AA-sentence", "2", "3.25", "0.25", "3.00", "3.00", "–"],
    ]


@pytest.mark.parametrize(("arms", "compare", "expected"), [
    (["dpr", "eadpr", "picl"], {}, [("eadpr", "dpr"), ("picl", "dpr")]),
    (["dpr", "eadpr", "picl"], {"picl": "eadpr"}, [("eadpr", "dpr"), ("picl", "eadpr")]),
    (["dpr", "eadpr"], {"dpr": "bm25", "absent": "dpr"}, [("dpr", "bm25"), ("eadpr", "dpr")]),
    (["dpr", "eadpr"], {"dpr": "eadpr"}, [("dpr", "eadpr")]),
    (["dpr", "eadpr"], {"eadpr": "absent"}, [("eadpr", "dpr")]),
    (["dpr", "eadpr"], {"eadpr": ["dpr", "bm25", "absent"]}, [("eadpr", "dpr"), ("eadpr", "bm25")]),
    (["dpr", "eadpr"], {"dpr": ["eadpr", "bm25"]}, [("dpr", "eadpr"), ("dpr", "bm25")]),
    (["dpr", "eadpr"], {"dpr": "eadpr", "eadpr": ["dpr", "bm25"]}, [("dpr", "eadpr"), ("eadpr", "bm25")]),
    (["eadpr"], {}, []),
])  # fmt: skip
def test_which_rows_are_compared(arms, compare, expected):
    settings = changed(trainings={arm: [arm] for arm in arms}, compare=compare)
    assert settings.comparisons == expected


def test_a_missing_arm_or_log_is_named_and_leaves_the_last_report(inputs):
    files.write_text(inputs / "small" / "table.md", "before")
    with pytest.raises(FileNotFoundError, match=r"picl\.parquet"):
        reported(inputs, settings=changed(trainings={"dpr": ["dpr"], "picl": ["picl"]}))
    (inputs / "training" / "eadpr" / plots.LOSS).unlink()
    with pytest.raises(FileNotFoundError, match=r"loss\.tsv"):
        reported(inputs)
    assert (inputs / "small" / "table.md").read_text(encoding="utf-8") == "before"
    assert [path.name for path in inputs.glob(".*")] == []


@pytest.mark.parametrize(("interval", "starred", "text"), [
    ((0.1234, -0.05, 0.3), False, "+12.3 [-5.0, +30.0]"),
    ((-0.0, 0.0, 0.0), False, "+0.0 [+0.0, +0.0]"),
    ((-0.0017, -0.0031, -0.0002), False, "-0.2 [-0.3, -0.0]"),
    ((-0.0017, -0.0031, -0.0002), True, "-0.17* [-0.31, -0.02]"),
    ((-0.00017, -0.00031, -0.00002), True, "-0.017* [-0.031, -0.002]"),
])  # fmt: skip
def test_differences_show_their_sign_and_with_a_star_are_told_from_0(interval, starred, text):
    assert markdown.bounded(Interval(*interval, 9), sign="+", starred=starred) == text


def test_csv_files_and_the_plots_of_dvc(small):
    """dpr of main/dev: 0, 2, 3 of 4 questions within the first 1, 2, 3 passages. Every column but measures of a point
    is an axis of dvc's plot, or its template uses it."""
    inputs, _ = small
    curve = read_csv(inputs, "topk", arm="dpr", question_set="main/dev")
    assert [*curve["accuracy"]] == ["0.000000", "0.500000", "0.750000"]
    assert [*read_csv(inputs, "topk")["arm"].unique()] == ["bm25", "dpr", "eadpr"]
    loss = read_csv(inputs, "loss")
    assert (len(loss), [*loss.iloc[1]]) == (10, ["2", "1.000000", "dpr"])
    for plot in load(ROOT / "dvc.yaml")["plots"]:
        (options,) = plot.values()
        ((path, y),) = options["y"].items()  # a name that is a path breaks `dvc exp run` in a fresh clone
        template = (ROOT / ".dvc" / "plots" / f"{options['template']}.json").read_text(encoding="utf-8")
        columns = {*read_csv(inputs, Path(path).stem)} - {options["x"], y}
        assert "arm" in columns
        for column in columns:
            assert f'"field": "{column}"' in template or f"datum.{column}" in template, (path, column)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_the_top_k_curve_equals_a_naive_count(ranks):
    """Rank 0 stands for no hit; float32 as in the outcomes."""
    values = np.array([1 / rank if rank else 0 for rank in ranks], dtype=np.float32).astype(np.float64)
    expected = [sum(0 < rank <= k for rank in ranks) / len(ranks) for k in range(1, 13)]
    assert plots.top_k_curve(values, 12) == pytest.approx(expected)


def run_stage(inputs, out, **environment):
    toy.write_config(inputs / "report.json", report=REPORT, robustness=COUNTS, read=READ, sets=SETS)
    command = [sys.executable, "-m", "stages.report", "--config", inputs / "report.json", "--out", inputs / out]
    for name, path in toy.report_inputs(inputs)._asdict().items():
        command += [f"--{name}", path]
    command += ["--metrics", inputs / f"{out}.json"]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
    return subprocess.run([*map(str, command)], cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_two_processes_write_the_same_bytes(inputs):
    first = run_stage(inputs, "one/small", PYTHONHASHSEED="1")
    second = run_stage(inputs, "two/small", PYTHONHASHSEED="2")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert files.tree_sha256(inputs / "one") == files.tree_sha256(inputs / "two")
    folder = inputs / "one" / "small"
    expected = {"headline.md", "table.md", "counts.md", "notes.json", "metrics", "topk.csv", "loss.csv"}
    assert {path.name for path in folder.iterdir()} == expected


@pytest.mark.parametrize(("questions", "has_table"), [([20, 9], False), ([20, 10], True)])
def test_a_table_by_type_needs_thirty_questions(questions, has_table):
    rows = [(group, n, 0.5) for group, n in zip(["who", "when"], questions, strict=True)]
    means = pd.DataFrame(rows, columns=["group", "n", "mean"]).assign(row="dpr", by="type", metric="top1")
    lines = report_tables.tables_by_kind(means, {"type": ["top1"]})
    assert [line for line in lines if line.startswith("top-1")] == ["top-1 (%) by question type:"] * has_table


def test_the_headline_compares_the_arm_that_validation_prefers_with_the_baseline(inputs):
    trained = {"validation": {"average_rank": 1.0}, "validation_pool": "", "last_50_steps": {}, **VALIDATED}
    trained |= {"kept_step": 0}
    toy.write_training(inputs, "eadpr", trained=trained, negatives=NEGATIVES, examples=FORMS["eadpr"])
    reported(inputs)
    lines = (inputs / "small" / "headline.md").read_text(encoding="utf-8").splitlines()
    assert lines[:5] == [
        "| %     | top-1 | top-2 | MRR@3 |",
        "|:------|------:|------:|------:|",
        "| bm25  |  50.0 | 100.0 |  75.0 |",
        "| dpr   |   0.0 |  50.0 |  33.3 |",
        "| eadpr |  75.0 |  75.0 |  75.0 |",
    ]
    assert lines[6] == (
        "eadpr puts an answering passage first for 75.0 % of 4 questions, dpr for 0.0: +75.0 points (95 %: 25.0 to"
        " 100.0). This is one training each: another seed gives other figures, on atlas by about 3 points. eadpr"
        " keeps the weights that it began with, as no later validation was better."
    )


def test_wings_without_measures_have_no_section_and_further_sections_stand_last(small, inputs):
    assert report_robustness(inputs, REPORT, COUNTS, SETS, inputs, pd.DataFrame()) == []
    assert report_readers(inputs, REPORT, READ, SETS, inputs, pd.DataFrame()) == []

    def section(folder, trainings):
        files.write_text(folder / "own.csv", "a\n")
        (aa,) = trainings.query("row == 'dpr' and question_set == 'main/dev' and by == '' and metric == 'aa'")["mean"]
        return ["# More", f"AA {aa}"]

    assert reported(inputs, more=[section]) == f"{small[1]}\n# More\n\nAA 0.666667\n"
    assert (inputs / "small" / "own.csv").exists()


def test_files_of_inactive_arms_are_deleted(inputs):
    paths = toy.report_inputs(inputs)
    folders = (paths.outcomes, paths.pairs, paths.training, paths.negatives, paths.examples)
    shutil.copyfile(paths.outcomes / "bm25.parquet", paths.outcomes / "hybrid.parquet")
    active_files = {path for folder in folders for path in folder.iterdir()}
    for path in (paths.outcomes / "stale.parquet", paths.pairs / "stale.parquet"):
        path.write_bytes(b"")
    for folder in folders[2:]:
        files.write_json(folder / "stale" / "report.json", {})
    removed = remove_inactive(paths, changed(fused=["hybrid"]))
    assert ({path.stem for path in removed}, {path.parent for path in removed}) == ({"stale"}, set(folders))
    assert {path for folder in folders for path in folder.iterdir()} == active_files
    assert remove_inactive(paths, REPORT) == [paths.outcomes / "hybrid.parquet"]
    read = paths.outcomes / "reading" / "x" / "dpr.parquet"
    files.write_text(read, "")
    reading = MeasuredBy(by=["x"], trainings={"dpr": ["dpr"]})
    assert remove_inactive(paths, changed(reading=reading)) == []
    assert remove_inactive(paths, REPORT) == [read.parent.parent]
    files.write_text(inputs / "rankings" / "old" / "evaluate.parquet", "")
    assert delete_inactive_rows(inputs / "rankings", REPORT) == [inputs / "rankings" / "old"]
