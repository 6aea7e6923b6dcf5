"""The stage `report` from the files that `evaluate` writes for `tests.evaluated`; the table word for word."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eadpr.evaluation import kinds
from eadpr.evaluation.outcomes import Outcomes
from eadpr.evaluation.statistics import Interval
from eadpr.readers.report import report_readers
from eadpr.report import markdown as tabulate
from eadpr.report import plot_data, plots
from eadpr.report import tables as report_tables
from eadpr.report import write as report
from eadpr.report.config import MeasuredBy, ReportArms
from eadpr.report.differences import Comparison, difference_table
from eadpr.report.loss_log import LOSS, read_loss
from eadpr.report.plan import make_plan, sampling_of
from eadpr.robustness.report import report_robustness
from eadpr.runtime import files
from eadpr.settings.resolve import load
from eadpr.storage import records, tables
from eadpr.storage.records import Distractor, Evidence, Outcome, PairScore, Positive, Question, Ranked, RankedPath, Span
from eadpr.two_hops import evaluate as of_paths
from eadpr.two_hops.retrieve import rank_passages
from tests import evaluated as toy
from tests.evaluated import COUNTS, EVALUATE, QUESTIONS, RANKINGS, READ, REPORT, SETS

ROOT = Path(__file__).resolve().parents[1]
NEGATIVES = {"with_negatives": 8, "without_negatives": 1, "negatives": 8, "source": "bm25"}
TRAINED = {"without_negatives": 1, "validation": {"average_rank": 2.5}}
DISTRACTORS = {"main/dev": {"pseudo": {"cut": {"pairs": 4, "kept": 3, "dropped": {"holds_answer": 1}}}}}
FORMS = {"dpr": {}, "eadpr": {"forms": {"cut": 5, "filled": 3}, "fallbacks": {"filled to cut": 2}}}
EVIDENCE = {
    "main/dev": {
        "pseudo": {
            "n": 1000, "accuracy": 0.97, "accuracy_low": 0.957, "accuracy_high": 0.979, "chance": 0.2,
            "share_of_passage": 0.15,
        },
    },
    "more/dev": {"pseudo": {"n": 0}},
}  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Everything the stage reads, the report in the folder `small`, and its Markdown; `stale` stands among the pairs,
    but is no active arm."""
    tmp_path = tmp_path_factory.mktemp("report")
    toy.write_inputs(tmp_path)
    for name in RANKINGS:
        toy.evaluated(tmp_path, name)
    for arm, masked in (("dpr", 3.25), ("eadpr", 12.5)):
        trained = TRAINED | {"last_50_steps": {"loss": 0.4, "masked": masked}}
        toy.write_training(tmp_path, arm, trained=trained, negatives=NEGATIVES, examples=FORMS[arm])
    files.write_json(tmp_path / "distractors" / "report.json", DISTRACTORS)
    files.write_json(tmp_path / "accuracy.json", EVIDENCE)
    (tmp_path / "pairs" / "stale.parquet").write_bytes(b"")
    return tmp_path, reported(tmp_path)


@pytest.fixture
def drawable(small, tmp_path):
    """What the stage reads, to be changed."""
    shutil.copytree(small[0], tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("small*"))
    return tmp_path


@pytest.fixture
def inputs(drawable, undrawn):
    """The same for a report whose pictures nobody looks at."""
    return drawable


def alone(*arms):
    """Each arm trained once."""
    return {arm: [arm] for arm in arms}


def reported(inputs, out="small", *, settings=REPORT, **changes):
    given_ = toy.report_inputs(inputs)._replace(**changes)
    return report.run(given_, inputs / out, inputs / f"{out}.json", settings, SETS)


def details(inputs, name):
    return json.loads((inputs / "small" / "metrics" / f"{name}.json").read_text())


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_main_table(small):
    """dpr of main/dev: hits of q1 to q4 at rank 2, none, 2, 3; eadpr: 1, 1, none, 1; bm25: 2, 2, 1, 1."""
    assert small[1].startswith(
        """\
# small: 5 passages

## main/dev: 4 questions

| %     | top-1 | top-2 | MRR@3 |          AA | AA-evidence |
|:------|------:|------:|------:|------------:|------------:|
| bm25  |  50.0 | 100.0 |  75.0 |           – |           – |
| dpr   |   0.0 |  50.0 |  33.3 |  66.7 (n=3) |  50.0 (n=2) |
| eadpr |  75.0 |  75.0 |  75.0 | 100.0 (n=3) | 100.0 (n=2) |

- By answer in the text, or by passage id where no text can hold one: top-1, top-2, MRR@3.
- AA: s(q, p⁺) > s(q, p′), the positive scores above itself without the answer
- AA-evidence: s(q, p⁺) > s(q, p*), the positive scores above itself without its evidence
"""
    )


def test_what_stands_beneath_the_table(small):
    _, markdown = small
    for line in (
        "| eadpr − dpr | +75.0 [+25.0, +100.0] |",
        "| who   |     1 | 100.0 | 100.0 |",
        "| when  |     1 |   0.0 | 100.0 |",
        "- main/dev (bm25, eadpr): 4 questions, 4 with a ranking, "
        "1 without answers that a text can hold, judged by passage id, "
        "3 with relevant passages given by id, 1 with supporting passages",
        "- main/dev (dpr): 4 questions, 3 with a ranking,",
        "- main/dev (dpr, eadpr): 3 AA pairs, 1 left out, the answer being beyond the encoder's cut, 2 AA-evidence",
        "- negatives (dpr, eadpr): 8 negatives, 9 questions, 8 with negatives, 1 without negatives",
        "- forms of distractors (eadpr): 5 cut, 3 filled; of these for want of what was drawn 2 filled to cut",
        "- training (dpr): 9 training examples, 1 without negatives, 3.25 false negatives masked per step (last 50",
        "- training (eadpr): 9 training examples, 1 without negatives, 12.5 false negatives masked per step (last 50",
        "| pseudo, cut, main/dev    |     4 |    3 | 1 holds answer |",
        "| main/dev     | 97.0 [95.7, 97.9] | 1,000 |   20.0 |             15.0 |",
    ):
        assert line in markdown, f"{line}\n\n{markdown}"
    assert "stale" not in markdown
    assert markdown.count("evidence (%)") == 1
    assert [row[0] for row in table(markdown, ["type", "pairs", "dpr", "eadpr"])] == ["type", "who", "when", "other"]


def table(markdown, first, name="main/dev"):
    """Rows, cell by cell, of the table of a question set whose header begins with `first`."""
    for block in markdown.split(f"## {name}:")[1].split("\n## ")[0].split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("|:")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        if rows and rows[0][: len(first)] == first:
            return rows
    raise AssertionError(f"no table {first} in\n{markdown}")


def test_an_arm_beyond_doubt_below_bm25_is_named(tmp_path):
    """Of 40 questions BM25 has an answer among the first 20 passages of all, dpr of 10, eadpr of 39: of 40 drawn with
    replacement all may be among those 39. Further down nothing is looked at, and without such a column nothing is said.
    """
    found = {}
    for name, hits in (("bm25", 40), ("dpr", 10), ("eadpr", 39)):
        toy.write_outcomes(tmp_path / name, {"top20": [float(i < hits) for i in range(40)], "top100": [0.0] * 40})
        found[name] = Outcomes([tmp_path / name])
    columns, sampling = ["top1", "top20", "top100", "mrr3"], sampling_of(REPORT)
    (said,) = report_tables.below_bm25("main/dev", found, ["dpr", "eadpr"], columns, sampling)
    pattern = r"\*\*Below BM25\*\* at top-20, in points: dpr − bm25 -75\.0 \[-87\.5, -6\d\.\d\]\. Fuse such an arm"
    assert re.match(pattern, said), said
    assert report_tables.below_bm25("main/dev", found, ["eadpr"], columns, sampling) == []
    assert report_tables.below_bm25("main/dev", found, ["dpr"], ["mrr3", "top100"], sampling) == []


def test_the_middle_of_the_first_span_says_where_evidence_stands(tmp_path):
    """In a passage of twelve characters, whose thirds begin at 0, 4 and 8; spans stand in the order of their choice."""
    spans = [[(0, 4)], [(0, 7)], [(10, 12), (0, 2)], [(0, 8)], [(0, 12)], [(8, 11)], [(11, 12)]]
    expected = ["early"] * 3 + ["middle"] * 2 + ["late"] * 2
    ids = [f"q{i}" for i in range(len(spans))]
    scored = [[records.ScoredSpan(*span, None) for span in ((0, 1), *own)] for own in spans]
    chosen = [[*range(1, len(own))] for own in scored]
    evidence = [Evidence(i, "p", "gold", "", *of, None) for i, *of in zip(ids, scored, chosen, strict=True)]
    rows = {
        "passages": [records.Passage("p", "", "éé 345678901", None)], "evidence": evidence,
        "questions": [QUESTIONS[0]._replace(id=i) for i in ids],
        "question_sets": [records.SetMember("a", "b", i) for i in ids],
        "positives": [Positive(i, "p", "given", None) for i in ids],
    }  # fmt: skip
    for name, of in rows.items():
        tables.write(tmp_path / f"{name}.parquet", type(of[0]), of)
    found = kinds.positions(tmp_path, tmp_path / "positives.parquet", tmp_path / "evidence.parquet", "gold", ["a/b"])
    assert found["position"].to_pylist() == expected


def test_metrics_by_position_of_the_evidence(drawable):
    """That of q1 is late, that of q2 early; of q3 and q4 none is known. In more/dev that of q5 is early. Hits as in the
    main table, by the first rank."""
    by = {"type": ["top2"], "position": ["top2", "aa"], "hop_type": ["all2"]}
    markdown = reported(drawable, settings=REPORT.model_copy(update={"by": by}))
    assert table(markdown, ["position", "questions"]) == [
        ["position", "questions", "bm25", "dpr", "eadpr"],
        ["early", "1", "100.0", "0.0", "100.0"],
        ["late", "1", "100.0", "100.0", "100.0"],
    ]
    assert "top-2 (%) by position of the evidence:" in markdown
    expected = [["early", "1", "0.0", "100.0"], ["late", "1", "100.0", "100.0"]]
    assert table(markdown, ["position", "pairs"])[1:] == expected
    assert [row[0] for row in table(markdown, ["position", "questions"], "more/dev")] == ["position", "early"]
    assert table(markdown, ["hop type"])[1:] == [["bridge", "1", "100.0", "0.0", "100.0"]]
    found = details(drawable, "dpr")["main/dev"]["by_position"]
    expected = {"early": (1, 0.0, 0.0), "late": (1, 1.0, 1.0)}
    assert {of: (found[of]["n"], found[of]["top2"], found[of]["aa"]) for of in found} == expected
    csv_file = drawable / "small" / "aa_by_position.csv"
    assert "early,0.000000,1,dpr,aa,main/dev\n" in csv_file.read_text(encoding="utf-8")


def test_aa_by_what_is_removed_and_the_scores_behind_it(small, inputs):
    """Of dpr's pairs of main/dev one scores less without its sentence, one as much; of eadpr's both less. dpr with and
    without the evidence: 2 and 2.5, 3 and 2."""
    assert "AA by what is removed" not in small[1]  # the main table has the two
    for arm, scores in (("dpr", (1.0, 1.0)), ("eadpr", (0.0, 0.5))):
        path = inputs / "pairs" / f"{arm}.parquet"
        more = [PairScore(q, p, "sentence", s) for q, p, s in zip(["q1", "q2"], ["p1", "p3"], scores, strict=True)]
        more.append(PairScore("q4", "p1", "sentence_cut", 3.0))
        tables.write(path, PairScore, [*tables.rows(path, PairScore), *more])
        toy.evaluated(inputs, arm)
    markdown = reported(inputs)
    assert table(markdown, ["arm", "AA"]) == [
        ["arm", "AA", "AA-evidence", "AA-sentence"],
        ["dpr", "66.7 (n=3)", "50.0 (n=2)", "50.0 (n=2)"],
        ["eadpr", "100.0 (n=3)", "100.0 (n=2)", "100.0 (n=2)"],
    ]
    assert details(inputs, "dpr")["main/dev"]["n_aa_sentence_cut"] == 1
    assert table(markdown, ["arm", "behind"]) == [
        ["arm", "behind", "pairs", "first", "second", "difference", "where above 0", "where not"],
        ["dpr", "AA", "3", "2.00", "1.33", "0.67", "1.00", "0.00"],
        ["dpr", "AA-evidence", "2", "2.50", "2.25", "0.25", "1.00", "-0.50"],
        ["dpr", "AA-sentence", "2", "1.50", "1.00", "0.50", "1.00", "0.00"],
        ["eadpr", "AA", "3", "3.17", "1.33", "1.83", "1.83", "–"],
        ["eadpr", "AA-evidence", "2", "4.00", "1.25", "2.75", "2.75", "–"],
        ["eadpr", "AA-sentence", "2", "3.25", "0.25", "3.00", "3.00", "–"],
    ]


def with_placebos(inputs):
    """The words of q1 and q2 score 1.5 and 1 with dpr, as p⁺ with eadpr; q4 has none. Of their texts that of q1 is
    longer than p1 without "Romulus", that of q2 shorter than p3 without "1969"."""
    made = [
        Distractor("q1", "p1", "placebo_words", 0, "cut", "It founded by Romulus.", [Span(3, 6)]),
        Distractor("q2", "p3", "placebo_words", 0, "cut", "In 1969.", [Span(8, 30)]),
    ]
    tables.write(inputs / "distractors" / "distractors.parquet", Distractor, made)
    for arm, scores in (("dpr", (1.5, 1.0)), ("eadpr", (5.0, 1.5))):
        path = inputs / "pairs" / f"{arm}.parquet"
        more = [PairScore(q, p, "placebo_words", s) for q, p, s in zip(["q1", "q2"], ["p1", "p3"], scores, strict=True)]
        tables.write(path, PairScore, [*tables.rows(path, PairScore), *more])
        toy.evaluated(inputs, arm)


CONTROLLED = {
    "columns": ["top1", "top2", "aa", "placebo_words", "controlled_aa"],
    "by": {"type": ["aa", "controlled_aa"]},
}


def test_controls_stand_beside_aa_and_first_among_the_headlines(drawable):
    """Placebo rate of dpr: 2 > 1.5, 1 = 1; controlled: 1.5 > 1, 1 = 1. Of eadpr: 5 = 5, 1.5 = 1.5; 5 > 1, 1.5 > 1."""
    with_placebos(drawable)
    markdown = reported(drawable, settings=REPORT.model_copy(update=CONTROLLED))
    assert table(markdown, ["%"]) == [
        ["%", "top-1", "top-2", "AA", "placebo (words)", "controlled AA"],
        ["bm25", "50.0", "100.0", "–", "–", "–"],
        ["dpr", "0.0", "50.0", "66.7 (n=3)", "50.0 (n=2)", "50.0 (n=2)"],
        ["eadpr", "75.0", "75.0", "100.0 (n=3)", "0.0 (n=2)", "100.0 (n=2)"],
    ]
    said = "s(q, p°) > s(q, p′), the positive without as many words elsewhere scores above"
    said += " the positive without the answer; chance is 50, of length alone 50.0\n"
    assert f"- controlled AA: {said}" in markdown
    assert "2 controlled AA pairs, 1 left out, answer or placebo being beyond the cut, 1 left out without" in markdown
    expected = ["dpr", "controlled AA", "2", "1.25", "1.00", "0.25", "0.50", "0.00"]
    assert table(markdown, ["arm", "behind"])[3] == expected
    assert "| who  |     1 | 100.0 | 100.0 |" in markdown.split("controlled AA (%) by question type:")[1]
    found = {f"arm{i}": {"main/dev": dict.fromkeys(CONTROLLED["columns"], 0.5)} for i in range(9)}
    first = report.headlines(found, drawable / "accuracy.json", CONTROLLED["columns"], "main/dev")["arm0"]
    assert list(first) == ["top1", "controlled_aa", "aa"]
    svg = (drawable / "small" / "aa_by_type.svg").read_text(encoding="utf-8")
    titles = ("AA", "placebo (words)", "controlled AA", "AA-evidence")
    assert all(f"<!-- main/dev: {title} -->" in svg for title in titles)
    rows = read_csv(drawable / "small" / "aa_by_type.csv")
    assert {row["metric"] for row in rows} == {"aa", "aa_evidence", "placebo_words", "controlled_aa"}


def test_the_scores_behind_awareness_of_the_evidence_are_drawn_with_their_controls(drawable):
    """dpr's q1 and q4 score 2 and 3, without the evidence 2.5 and 2, without the placebo 1 and 1.5."""
    path = drawable / "pairs" / "dpr.parquet"
    more = [PairScore(q, p, "placebo", s) for q, p, s in zip(["q1", "q4"], ["p1", "p5"], (1.0, 1.5), strict=True)]
    tables.write(path, PairScore, [*tables.rows(path, PairScore), *more])
    made = [
        Distractor(question, passage, strategy, 0, "cut", text, [Span(0, 1)])
        for question, passage, text in (("q1", "p1", "Romulus."), ("q4", "p5", "His twin."))
        for strategy in ("sentence", "placebo")
    ]
    tables.write(drawable / "distractors" / "distractors.parquet", Distractor, made)
    toy.evaluated(drawable, "dpr")
    assert "without its evidence; 1 of 1 p* hold an answer still\n" in reported(drawable)
    above = {}
    for row in read_csv(drawable / "small" / "score_differences.csv"):
        if (row["arm"], row["question_set"]) == ("dpr", "main/dev") and float(row["low"]) >= 0:
            above[row["metric"]] = above.get(row["metric"], 0.0) + float(row["share"])
    assert above == {"aa_evidence": 0.5, "placebo": 1.0, "controlled_aa_evidence": 0.0}
    svg = (drawable / "small" / "score_differences.svg").read_text(encoding="utf-8")
    titles = ("AA-evidence", "placebo (sentence)", "controlled AA-evidence")
    assert all(f"<!-- main/dev: {title} -->" in svg for title in titles)


SEEDS = REPORT.model_copy(update={"trainings": {"dpr": ["dpr"], "eadpr": ["eadpr", "bm25"]}, "columns": ["top1"]})


@pytest.fixture
def seeds(inputs):
    """BM25 stands in for a second training of eadpr: top-1 75 and 50 of 100, standard deviation 17.7."""
    for folder, suffix in (("training", ""), ("negatives", ""), ("examples", ""), ("pairs", ".parquet")):
        source, copy = inputs / folder / f"eadpr{suffix}", inputs / folder / f"bm25{suffix}"
        (shutil.copyfile if suffix else shutil.copytree)(source, copy)
    return inputs


def test_macro_averages_have_a_table_where_there_are_any(small, seeds):
    """Of main/dev q1 and q2 have one relation, q3 and q4 another. Top-1 of bm25 0, 0, 1, 1; dpr 0 everywhere; eadpr 1,
    1, 0, 1, and bm25's."""
    assert "relations" not in small[1]
    markdown = reported_of(seeds, ["P19", "P19", "P20", "P20", None], SEEDS)
    expected = [["macro", "top-1"], ["bm25", "50.0"], ["dpr", "0.0"], ["eadpr", "62.5 ± 17.7"]]
    assert table(markdown, ["macro"]) == expected
    assert markdown.count("Mean over the 2 relations (%):") == 1


def reported_of(inputs, relations, settings):
    """With questions of these relations."""
    asked = [question._replace(relation=of) for question, of in zip(QUESTIONS, relations, strict=True)]
    tables.write(inputs / "records" / "questions.parquet", Question, asked)
    for name in RANKINGS:
        toy.evaluated(inputs, name)
    return reported(inputs, settings=settings)


def test_a_macro_average_says_of_how_many_relations_it_is(inputs):
    """q3, alone of its relation, has no pair."""
    markdown = reported_of(inputs, ["P19", "P19", "P20", "P19", None], REPORT)
    assert markdown.count("Mean over the 2 relations (%); n of them where not all have such pairs:") == 1
    dpr = next(row for row in table(markdown, ["macro"]) if row[0] == "dpr")
    assert dpr[-2:] == ["66.7 (n=1)", "50.0 (n=1)"]
    by_id = REPORT.model_copy(update={"columns": ["top1", "recall2"]})
    markdown = reported_of(inputs, ["P20", "P19", "P20", "P20", None], by_id)
    assert markdown.count("Mean over the 2 relations (%):") == 1  # q2 has no relevant passage, and no cell an n


def test_rankings_too_short_for_a_column_are_named(small, inputs):
    """The deepest rank of more/dev is 3 with bm25 and eadpr, 5 with dpr; top5 needs 5."""
    markdown = reported(inputs, settings=REPORT.model_copy(update={"columns": ["top1", "top5", "aa"]}))
    assert "- more/dev, short rankings (bm25, eadpr): at most 3 passages per question" in markdown
    assert "(dpr): at most" not in markdown.split("more/dev, short rankings", 1)[1]
    assert "short rankings" not in small[1]


def test_what_inactive_arms_left_is_deleted(inputs):
    of = toy.report_inputs(inputs)
    folders = (of.outcomes, of.pairs, of.training, of.negatives, of.examples)
    (of.outcomes / "stale.parquet").write_bytes(b"")
    files.write_json(of.training / "stale" / "metrics.json", TRAINED)
    files.write_json(of.negatives / "stale" / "report.json", NEGATIVES)
    files.write_json(of.examples / "stale" / "report.json", {})
    before = {path for folder in folders for path in folder.iterdir()}
    left = report.remove_inactive(of, REPORT)
    assert ({path.stem for path in left}, {path.parent for path in left}) == ({"stale"}, set(folders))
    assert {path for folder in folders for path in folder.iterdir()} == before - set(left)
    assert report.remove_inactive(of, REPORT) == []
    answers = of.outcomes / "answers" / "x" / "dpr.parquet"
    files.write_text(answers, "")
    reading = MeasuredBy(by=["x"], trainings={"dpr": ["dpr"]})
    assert report.remove_inactive(of, REPORT.model_copy(update={"reading": reading})) == []
    assert report.remove_inactive(of, REPORT) == [answers.parent.parent]


def test_a_fused_ranking_is_a_row_without_aa_and_compared_like_an_arm(inputs):
    shutil.copyfile(inputs / "outcomes" / "bm25.parquet", inputs / "outcomes" / "hybrid.parquet")
    settings = REPORT.model_copy(update={"fused": ["hybrid"]})
    markdown = reported(inputs, settings=settings)
    assert table(markdown, ["%"])[-1] == ["hybrid", "50.0", "100.0", "75.0", "–", "–"]
    assert table(markdown, ["difference"])[-1][0] == "hybrid − dpr"
    assert table(markdown, ["difference"])[-1][1].startswith("+50.0 [")
    assert curve(inputs, "hybrid")
    report.remove_inactive(toy.report_inputs(inputs), settings)
    assert (inputs / "outcomes" / "hybrid.parquet").exists()
    report.remove_inactive(toy.report_inputs(inputs), REPORT)
    assert not (inputs / "outcomes" / "hybrid.parquet").exists()


def test_without_an_annotator_there_is_no_accuracy_of_evidence(inputs):
    files.write_json(inputs / "accuracy.json", {name: {"distractors": {}} for name in EVIDENCE})
    assert "evidence (%)" not in reported(inputs)
    assert "evidence" not in json.loads((inputs / "small.json").read_text())


def test_arms_stand_in_the_order_of_the_config(inputs):
    markdown = reported(inputs, settings=REPORT.model_copy(update={"trainings": alone("eadpr", "dpr")}))
    table = markdown.split("\n\n")[2]
    assert [line.split()[1] for line in table.splitlines()[2:]] == ["bm25", "eadpr", "dpr"]
    assert "- more/dev (bm25, eadpr, dpr): 2 questions" in markdown


@pytest.mark.parametrize(("arms", "compare_with", "expected"), [
    (["dpr", "eadpr", "picl"], {}, [("eadpr", "dpr"), ("picl", "dpr")]),
    (["dpr", "eadpr", "picl"], {"picl": "eadpr"}, [("eadpr", "dpr"), ("picl", "eadpr")]),
    (["dpr", "eadpr"], {"dpr": "bm25", "absent": "dpr"}, [("dpr", "bm25"), ("eadpr", "dpr")]),
    (["dpr", "eadpr"], {"dpr": "eadpr"}, [("dpr", "eadpr")]),
    (["dpr", "eadpr"], {"eadpr": "absent"}, [("eadpr", "dpr")]),
    (["eadpr"], {}, []),
])  # fmt: skip
def test_who_is_compared_with_whom(arms, compare_with, expected):
    settings = REPORT.model_copy(update={"trainings": alone(*arms), "compare": compare_with})
    assert make_plan(settings, []).comparisons == expected


@pytest.mark.parametrize("text", ["", "0\t1.5\n", "step\tloss\n1\tmuch\n"])
def test_a_damaged_log_of_a_training_is_named(tmp_path, text):
    path = tmp_path / LOSS
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ValueError, match=r"loss\.tsv is no log of a training's loss .*run `dvc repro`"):
        read_loss(tmp_path)


@pytest.mark.parametrize(
    ("compare_with", "said"),
    [({"dpr": "dpr"}, "with itself"), ({"dpr": "eadpr", "eadpr": "dpr"}, "eadpr is compared with dpr already")],
)
def test_an_arm_is_not_compared_with_itself_nor_twice_with_another(compare_with, said):
    with pytest.raises(ValueError, match=said):
        ReportArms.model_validate(REPORT.model_dump() | {"compare": compare_with})


def test_an_arm_with_two_trainings_has_a_row_of_means(seeds):
    def cells(text):
        return [line.split("|")[i].strip() for line in text.splitlines() if "−" in line for i in (1, 2)]

    markdown = reported(seeds, settings=SEEDS)
    assert table(markdown, ["%"])[2:] == [["dpr", "0.0"], ["eadpr", "62.5 ± 17.7"]]
    assert [row[2] for row in table(markdown, ["arm", "behind"])[1:]] == ["3", "2", "3", "2"]  # pairs, not trainings
    assert "over trainings with different seeds: eadpr 2." in markdown
    differences = markdown.split("## more/dev")[0].partition("Differences")[2]
    assert "No stars: without several trainings of both sides, as many of each" in markdown  # dpr has one, as bm25
    assert cells(differences)[:2] == ["eadpr − dpr", "+62.5 [+50.0, +87.5]"]
    assert curve(seeds, "eadpr") == ["0.625000", "0.875000", "0.875000"]


def test_a_missing_arm_or_question_set_is_named(inputs):
    with pytest.raises(FileNotFoundError, match=r"picl\.parquet does not exist"):
        reported(inputs, settings=REPORT.model_copy(update={"trainings": alone("dpr", "picl")}))
    toy.write_outcomes(inputs / "outcomes" / "stale.parquet", {"ranked": [1]}, name="other/dev")
    with pytest.raises(ValueError, match=r"stale\.parquet has no question set 'main/dev' \(it has other/dev\)"):
        reported(inputs, settings=REPORT.model_copy(update={"trainings": alone("stale")}))


def test_an_error_leaves_the_last_report(inputs):
    files.write_text(inputs / "small" / "table.md", "before")
    (inputs / "training" / "eadpr" / LOSS).unlink()
    with pytest.raises(FileNotFoundError, match=r"loss\.tsv does not exist; run `dvc repro` to train the arm"):
        reported(inputs)
    assert (inputs / "small" / "table.md").read_text(encoding="utf-8") == "before"
    assert [path.name for path in inputs.glob(".*")] == []


def test_an_arm_of_no_steps_has_no_curve(inputs):
    (inputs / "training" / "eadpr" / LOSS).write_text("step\tloss\n", encoding="utf-8")
    loss = plot_data.loss_points(inputs / "training", ["dpr", "eadpr"])
    assert {*loss["arm"]} == {"dpr"}
    assert (loss["step"][2], loss["loss"][2]) == (3, pytest.approx(2 / 3))


def test_differences_always_show_their_sign():
    assert tabulate.difference(Interval(0.1234, -0.05, 0.3, 9)) == "+12.3 [-5.0, +30.0]"
    assert tabulate.difference(Interval(-0.0, 0.0, 0.0, 9)) == "+0.0 [+0.0, +0.0]"


def test_how_many_pairs_are_compared_is_said_where_they_are_fewer():
    """Question a has two pairs of one arm and one of the other, c has none of the other."""
    first, second = (
        pd.DataFrame({"sums": sums, "counts": counts}, index=list("abcd")[: len(sums)])
        for sums, counts in (([1.0, 1.0, 1.0, 0.0], [2, 2, 1, 1]), ([1.0, 0.0, 0.0], [1, 2, 1]))
    )
    rows = [Comparison("eadpr − dpr", [([first], [second]), ([first], [first])])]
    said, _, fewer = difference_table(rows, ["AA", "placebo"], sampling_of(REPORT))
    assert "without several trainings" in said
    assert fewer.endswith(": eadpr − dpr at AA 3 of 4.")


def test_a_starred_difference_is_told_from_0():
    for digits, shown in ((3, "-0.17* [-0.31, -0.02]"), (4, "-0.017* [-0.031, -0.002]")):
        scale = 10.0**-digits
        assert tabulate.difference(Interval(-1.7 * scale, -3.1 * scale, -0.2 * scale, 9), starred=True) == shown
    assert tabulate.difference(Interval(-0.0017, -0.0031, -0.0002, 9)) == "-0.2 [-0.3, -0.0]"


def curve(inputs, arm):
    """Of main/dev."""
    rows = read_csv(inputs / "small" / "topk.csv")
    return [row["accuracy"] for row in rows if (row["arm"], row["question_set"]) == (arm, "main/dev")]


def test_csv_files(small):
    """dpr of main/dev: 0, 2, 3 of 4 questions within the first 1, 2, 3 passages."""
    inputs, _ = small
    assert curve(inputs, "dpr") == ["0.000000", "0.500000", "0.750000"]
    assert list(dict.fromkeys(row["arm"] for row in read_csv(inputs / "small/topk.csv"))) == ["bm25", "dpr", "eadpr"]
    loss = (inputs / "small" / "loss.csv").read_text(encoding="utf-8").splitlines()
    assert (len(loss), loss[2]) == (11, "2,1.000000,dpr")
    assert "when,0.000000,1,dpr,aa,main/dev\n" in (inputs / "small" / "aa_by_type.csv").read_text(encoding="utf-8")
    differences = read_csv(inputs / "small" / "score_differences.csv")
    shares = [float(row["share"]) for row in differences if (row["arm"], row["question_set"]) == ("dpr", "main/dev")]
    assert sum(shares) == pytest.approx(1, abs=1e-5)


def test_plots_of_dvc_tell_apart_what_the_files_tell_apart(small):
    """Every column but measures of a point is an axis, or the template sets it apart."""
    inputs, _ = small
    for plot in load(ROOT / "dvc.yaml")["plots"]:
        ((path, of),) = plot.items()
        template = (ROOT / ".dvc" / "plots" / f"{of['template']}.json").read_text(encoding="utf-8")
        columns = read_csv(inputs / "small" / Path(path).name)[0].keys() - {of["x"], of["y"], "pairs", "low", "high"}
        assert "arm" in columns
        for column in columns:
            assert f'"field": "{column}"' in template or f"datum.{column}" in template, (path, column)


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), min_size=1, max_size=3), st.integers(2, 40))
def test_bins_never_mix_signs_and_lose_nothing(arms, bins):
    values = [np.array(of_arm) for of_arm in arms]
    edges = plot_data.bin_edges(values, bins)
    assert 0.0 in edges
    assert (np.diff(edges) > 0).all()
    middle = edges.index(0.0)
    for of_arm in values:
        shares = plot_data.bin_shares(of_arm, edges)
        assert (sum(shares), len(shares)) == (pytest.approx(1), len(edges) - 1)
        assert sum(shares[middle:]) == pytest.approx((of_arm > 0).mean())


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_the_top_k_curve_equals_a_naive_count(ranks):
    """Rank 0 stands for no hit; float32 as in the outcomes."""
    values = np.array([1 / rank if rank else 0 for rank in ranks], dtype=np.float32).astype(np.float64)
    expected = [sum(0 < rank <= k for rank in ranks) / len(ranks) for k in range(1, 13)]
    assert plot_data.top_k_curve(values, 12) == pytest.approx(expected)


def test_running_mean_by_hand():
    assert plots.smooth(np.array([4.0, 2, 0, 6]), 2).tolist() == [4, 3, 1, 3]


def test_panels_stand_in_rows_of_three_with_one_legend():
    for count, columns, rows in ((1, 1, 1), (2, 2, 1), (7, 3, 3)):
        panels = {f"panel{number}": 1 for number in range(count)}
        text = plots.svg(panels, lambda axis, end: axis.plot([0, end], [0, 1], label="dpr"), "", ["dpr"])
        found = ElementTree.fromstring(text)
        width, height = (float(found.get(name).removesuffix("pt")) / 72 for name in ("width", "height"))
        assert (width, height) == pytest.approx((columns * plots.PANEL[0], rows * plots.PANEL[1]))
        assert len(re.findall(r'id="matplotlib.axis_\d+"', text)) == 2 * count, "the spare places show no axes"
        assert text.count("<!-- dpr -->") == 1


def test_arms_look_different_and_bm25_is_grey():
    styles = plots.look(["bm25", *(f"arm{i}" for i in range(20))])
    assert styles["bm25"]["color"] == plots.GREY
    assert len({tuple(style.values()) for style in styles.values()}) == 21
    assert plots.look(["bm25", "arm0"])["arm0"] == styles["arm0"]


STAGE = [sys.executable, "-m", "stages.report"]
SECTIONS = {"report": REPORT, "robustness": COUNTS, "read": READ, "sets": SETS}


def run_stage(inputs, out, **environment):
    toy.write_config(inputs / "report.json", **SECTIONS)
    command = [*STAGE, "--config", inputs / "report.json", "--out", inputs / out]
    command += [word for name, path in toy.report_inputs(inputs)._asdict().items() for word in (f"--{name}", path)]
    command += ["--metrics", inputs / f"{out}.json"]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
    return subprocess.run([*map(str, command)], cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_two_processes_write_the_same_bytes_and_print_the_table_last(inputs):
    matplotlibrc = inputs / "matplotlibrc"
    matplotlibrc.write_text("axes.linewidth: 5\nsvg.hashsalt: other\n", encoding="utf-8")
    first = run_stage(inputs, "one/small", PYTHONHASHSEED="1")
    second = run_stage(inputs, "two/small", PYTHONHASHSEED="2", MATPLOTLIBRC=str(matplotlibrc))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert files.tree_sha256(inputs / "one") == files.tree_sha256(inputs / "two")
    names = {path.name for path in (inputs / "one" / "small").iterdir()}
    plotted = ("topk", "loss", "aa_by_type", "aa_by_position", "score_differences")
    assert names == {"table.md", "metrics"} | {f"{name}.{kind}" for name in plotted for kind in ("csv", "svg")}
    for name in plotted:
        text = (inputs / "one" / "small" / f"{name}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "<dc:date>" not in text
    assert first.stdout.endswith((inputs / "one" / "small" / "table.md").read_text(encoding="utf-8"))


TWO_HOPS = REPORT.model_copy(update={"fused": ["mdr"], "one_hop": {"mdr": "eadpr"}})


def write_paths(inputs):
    """A row mdr. q4 needs p1 and p5, which the first two paths hold between them; as a ranking p5 is the fourth."""
    found = [RankedPath("q4", 1, ["p1", "p2"], [2.0, 1.0], 3.0), RankedPath("q4", 2, ["p4", "p5"], [1.0, 1.0], 2.0)]
    tables.write(inputs / "ranking" / "paths" / "evaluate.parquet", RankedPath, found)
    tables.write(inputs / "ranking" / "evaluate.parquet", Ranked, rank_passages(found))
    files.write_text(inputs / "training" / "mdr" / LOSS, "step\tloss\n1\t3.5\n2\t1.5\n")
    counts = {"questions": 7, "left_out": 2, "without_negatives": 0, "without_distractor": 3, "truncated": 4}
    counts |= {"without_placebo": 5}
    files.write_json(inputs / "training" / "mdr" / "metrics.json", {"steps": 2, **counts})
    settings = EVALUATE.model_copy(update={"all_at": [2, 4]})
    table = inputs / "ranking" / "paths" / "evaluate.parquet"
    more = partial(of_paths.measure_paths, table, records=inputs / "records", all_at=[2, 4])
    return toy.evaluated(inputs, "mdr", ranking=inputs / "ranking", settings=settings, more=more)


def test_paths_are_a_row_with_their_own_measure_of_all_passages_found(inputs):
    assert write_paths(inputs) == {"main/dev": 4, "more/dev": 2}
    settings = {"columns": ["top2", "all2"], "differences": ["all2"], "compare": {"mdr": "eadpr"}}
    markdown = reported(inputs, settings=TWO_HOPS.model_copy(update=settings))
    for name, of_set in details(inputs, "mdr").items():
        values = {"all2": 0.0, "all4": 1.0, "pr2": 1.0, "pr4": 1.0, "path_recall2": 0.0, "path_recall4": 0.0}
        values |= {"hop1_recall2": 1.0, "hop1_recall4": 1.0, "one_hop": {"all2": 1.0, "all3": 1.0}}
        assert values.items() <= of_set.items()
        assert (of_set["n_supporting"], of_set["n_ranked"]) == (1, 1), name
        assert values.items() <= of_set["by_hop_type"]["bridge"].items()
        assert (list(of_set["by_hop_type"]), of_set["by_hop_type"]["bridge"]["n"]) == (["bridge"], 1)
        assert of_set["by_type"]["other"]["all4"] == 1.0
    rows = [(row.question_set, row.question_id, row.metric, row.value) for row in outcomes_of(inputs, "mdr")]
    assert len(rows) == len({row[:3] for row in rows})
    assert [row for row in rows if row[2].startswith("all")] == [
        (f"{name}/dev", "q4", f"all{k}", value) for name in ("main", "more") for k, value in ((2, 0.0), (4, 1.0))
    ]
    assert "| mdr   |   0.0 |     0.0 |" in markdown
    assert "| mdr − eadpr | −100.0 [−100.0, −100.0]" in markdown.replace("-", "−")


def test_measures_of_paths_have_a_table_by_the_kind_of_question(small, inputs):
    """eadpr ranks both passages of q4 first, and k of its ranking is 2 or 3."""
    assert "Two hops" not in small[1]
    write_paths(inputs)
    header = ["%", "questions", "n", "R-all@2", "R-all@4", "one-hop R-all@2", "PR@2", "PR@4"]
    header += ["path recall@2", "path recall@4", "1-recall@2", "1-recall@4"]
    values = ["0.0", "100.0", "100.0", "100.0", "100.0", "0.0", "0.0", "100.0", "100.0"]
    rows = [["mdr", kind, "1", *values] for kind in ("all", "bridge")]
    assert table(reported(inputs, settings=TWO_HOPS), ["%", "questions"]) == [header, *rows]


def test_what_nothing_was_measured_of_has_no_section(tmp_path):
    idle = MeasuredBy(by=["removed"], trainings={})
    settings = REPORT.model_copy(update={"robustness": idle, "reading": idle})
    told = (tmp_path, pd.DataFrame(columns=["row", "metric"]))
    assert report_robustness(tmp_path, settings, COUNTS, SETS, *told) == []
    assert report_readers(tmp_path, settings, READ, SETS, *told) == []


def test_further_sections_stand_last_and_get_the_folder_and_the_means(small, inputs):
    def section(folder, trainings):
        files.write_text(folder / "own.csv", "a\n")
        (aa,) = trainings.query("row == 'dpr' and question_set == 'main/dev' and by == '' and metric == 'aa'")["mean"]
        return ["# More", f"AA {aa}"]

    markdown = report.run(toy.report_inputs(inputs), inputs / "small", inputs / "small.json", REPORT, SETS, [section])
    assert markdown == f"{small[1]}\n# More\n\nAA 0.666667\n"
    assert (inputs / "small" / "own.csv").exists()


def test_headlines_are_few(small):
    """bm25 has no AA; with room for four numbers, rows have one each."""
    found = json.loads((small[0] / "small.json").read_text())
    assert found["evidence"] == {"accuracy": 0.97}
    assert found["bm25"] == {"top1": 0.5, "top2": 1.0, "mrr3": 0.75}
    assert found["dpr"] == {"top1": 0.0, "top2": 0.5, "mrr3": 0.333333, "aa": 0.666667, "aa_evidence": 0.5}


@given(st.integers(1, 40), st.integers(1, 12))
def test_headlines_are_never_more_than_thirty(small, rows, columns):
    names = [f"top{k}" for k in range(1, columns + 1)]
    found = {f"arm{i}": {"main/dev": dict.fromkeys([*names, "aa"], 0.5)} for i in range(rows)}
    shown = report.headlines(found, small[0] / "accuracy.json", [*names, "aa"], "main/dev")
    assert 0 < sum(map(len, shown.values())) <= report.HEADLINES
    assert shown.pop("evidence") == {"accuracy": 0.97}
    assert all("top1" in of_row for of_row in shown.values())
    if rows <= 14:
        assert all("aa" in of_row for of_row in shown.values())


def test_losses_and_counts_of_two_hops_are_shown_and_a_fused_ranking_has_none(drawable):
    write_paths(drawable)
    shutil.copyfile(drawable / "outcomes" / "bm25.parquet", drawable / "outcomes" / "hybrid.parquet")
    markdown = reported(drawable, settings=TWO_HOPS.model_copy(update={"fused": ["hybrid", "mdr"]}))
    said = "7 training questions, 2 left out without an example of each hop, 0 without negatives, "
    said += "3 hops without a distractor, 5 hops without a placebo, 4 hops with evidence or placebo beyond the cut"
    assert f"- training (mdr): {said}\n" in markdown
    loss = read_csv(drawable / "small" / "loss.csv")
    assert [(row["step"], row["loss"]) for row in loss if row["arm"] == "mdr"] == [("1", "3.500000"), ("2", "1.500000")]
    assert list(dict.fromkeys(row["arm"] for row in loss)) == ["dpr", "eadpr", "mdr"]
    assert "<!-- mdr -->" in (drawable / "small" / "loss.svg").read_text(encoding="utf-8")


def outcomes_of(inputs, name):
    return tables.rows(inputs / "outcomes" / f"{name}.parquet", Outcome)
