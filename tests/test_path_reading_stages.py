"""What is measured of the reader of paths, and the table of its rankings."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from eadpr.readers.evaluate import METRICS, evaluate_reading, path_reading_values
from eadpr.readers.predictions import Prediction, Sentence
from eadpr.readers.report import report_readers
from eadpr.report.config import MeasuredBy, ReportArms
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Outcome, Question
from tests.evaluated import REPORT, cells, summary, write_outcomes
from tests.path_reading_toy import READ, supported, write_all
from tests.small_collection import question

pytestmark = pytest.mark.readers

EVALUATED = Sets(train=[], evaluate=["toy/dev"], annotator=[])


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("toy"))


def evaluated(toy: Path, out: Path, rows: list[Prediction], sets: Sets = EVALUATED) -> dict:
    tables.write(out / "predictions.parquet", Prediction, rows)
    evaluate_reading(
        records=toy / "records", positives=toy / "positives", reading=out, outcomes=out / "outcomes.parquet",
        of_paths=True, settings=READ, sets=sets,
    )  # fmt: skip
    return summary(out / "outcomes.parquet", sets.evaluate)["toy/dev"]


def support(i: int) -> list[Sentence]:
    return [Sentence(f"a{i}", 0), Sentence(f"b{i}", 1)]


def test_metrics_by_hand(toy, tmp_path):
    """q15 and q19 are right, q16 lacks a supporting sentence (F1 2/3), q17's answer is wrong, q18 has none."""
    answers = {q.id: q.answers[0] for q in tables.rows(toy / "records/questions.parquet", Question)}
    rows = [
        supported("q15", answers["q15"], support(15)), supported("q16", answers["q16"], support(16)[:1]),
        supported("q17", "nowhere", support(17)), supported("q19", "Yes", support(19)),
    ]  # fmt: skip
    metrics = evaluated(toy, tmp_path, rows)
    expected = {"em": 3 / 5, "f1": 3 / 5, "sp_em": 3 / 5, "sp_f1": 11 / 15, "joint_em": 2 / 5, "joint_f1": 8 / 15}
    assert {name: metrics[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert (metrics["n"], metrics["n_supporting"], metrics["n_read"]) == (5, 5, 4)
    kinds = metrics["by_hop_type"]
    assert {kind: (part["n"], part["joint_em"], part["em"]) for kind, part in kinds.items()} == {
        "bridge": (4, 0.25, 0.5),
        "comparison": (1, 1.0, 1.0),
    }
    outcomes = {(row.question_id, row.metric): row.value for row in tables.rows(tmp_path / "outcomes.parquet", Outcome)}
    assert len(outcomes) == 5 * (len(METRICS) + 1)  # and whether it was read
    assert [outcomes[f"q{i}", "joint_em"] for i in range(15, 20)] == [1, 0, 0, 0, 1]


def test_a_question_without_answers_counts_as_wrong():
    unanswered = question("q", "?", [])._replace(hops=["a", "b"])
    values = path_reading_values([unanswered], [], {"q": supported("q", "x", [Sentence("a", 0)])})
    assert [values[metric].values.tolist() for metric in METRICS] == [[0.0]] * len(METRICS)


def test_questions_without_hops_are_not_for_a_reader_of_paths():
    with pytest.raises(ValueError, match=r"no question of sets\.evaluate has hops"):
        path_reading_values([question("q", "who?", ["x"])], [], {})


def report_of(names: Sequence[str], **compared: str) -> ReportArms:
    trainings = {name: [name] for name in names}
    changes = {
        "compare": compared, "reading": MeasuredBy(by=["x"], trainings=trainings), "of_paths": ["x"],
        "resamples": 10_000,
    }  # fmt: skip
    return REPORT.model_copy(update=changes)


def reported(folder: Path, rankings: dict[str, list[float]]) -> str:
    """All metrics of a ranking are the same; its last question is a comparison."""
    for name, joint in rankings.items():
        kinds = ["bridge"] * (len(joint) - 1) + ["comparison"]
        values = dict.fromkeys(METRICS, joint) | {"read": [1] * len(joint)}
        write_outcomes(folder / f"reading/x/{name}.parquet", values, kinds, "toy/dev")
    output = (folder / "out", pd.DataFrame(columns=["row", "metric"]))
    return "\n\n".join(report_readers(folder, report_of(list(rankings)), READ, EVALUATED, *output))


def test_the_table_of_rankings_by_hand(tmp_path):
    markdown = reported(tmp_path, {"mdr-dpr": [0, 0, 1, 1], "mdr-eadpr": [1, 0.5, 1, 1]})
    lines = cells(markdown)
    assert markdown.startswith("# Answers of the reader of paths x\n\n## toy/dev: 4 questions\n")
    assert lines[0] == ["%", "answer EM", "answer F1", "support EM", "support F1", "joint EM", "joint F1"]
    assert [line[:2] for line in lines[1:3]] == [["mdr-dpr", "50.0"], ["mdr-eadpr", "87.5"]]
    assert "Bridge questions (n=3):" in markdown
    assert "Comparisons (n=1):" in markdown
    assert ["mdr-dpr", *["33.3"] * 6] in lines
    assert ["mdr-eadpr", *["83.3"] * 6] in lines
    assert lines[-1][0] == "mdr-eadpr − mdr-dpr"
    assert all(cell.startswith("+37.5 [") for cell in lines[-1][1:])
