"""The report's table that compares rankings by a reader's answers."""

import json
from pathlib import Path

import pandas as pd
import pytest

from eadpr.readers.report import report_readers
from eadpr.report.config import MeasuredBy
from eadpr.report.summary import KEYS
from eadpr.runtime.section import Sets
from tests.evaluated import READ, REPORT, cells, write_outcomes

pytestmark = pytest.mark.readers

ARMS = {"bm25": ["bm25"], "dpr": ["dpr", "dpr2"], "eadpr": ["eadpr", "eadpr2"]}


def reported(folder: Path, matches: dict[str, list[float]], arms: dict[str, list[str]], aa=None) -> str:
    """Reports a reader x: `matches` are each question's exact match and F1 by ranking; `aa` is also controlled AA."""
    for name, values in matches.items():
        outcomes = {"read": [1] * len(values), "em_5": values, "f1_5": values}
        write_outcomes(folder / f"reading/x/{name}.parquet", outcomes)
    aware = [(arm, metric, share) for arm, share in (aa or {}).items() for metric in ("aa", "controlled_aa")]
    rankings = [(arm, "main/dev", "", "", metric, share, 9) for arm, metric, share in aware]
    rankings = pd.DataFrame(rankings, columns=[*KEYS, "mean", "n"])
    settings = REPORT.model_copy(update={"reading": MeasuredBy(by=["x"], trainings=arms), "resamples": 10_000})
    sets = Sets(train=[], evaluate=["main/dev"], annotator=[])
    return "\n\n".join(report_readers(folder, settings, READ, sets, folder / "out", rankings))


def test_the_table_of_rankings_by_hand(tmp_path):
    """bm25, of which no awareness is known, 2 of 4; each of dpr's trainings 1 of 4; eadpr's 3 and 4 of 4, so 87.5 %."""
    matches = {"bm25": [1, 1, 0, 0], "dpr": [1, 0, 0, 0], "eadpr": [1, 1, 1, 0], "eadpr2": [1, 1, 1, 1]}
    matches["dpr2"] = matches["dpr"]
    markdown = reported(tmp_path, matches, ARMS, {"dpr": 0.5, "dpr2": 0.5, "eadpr": 0.7, "eadpr2": 0.8})
    assert markdown.startswith("# Answers of the reader x\n")
    assert "\n## main/dev: 4 questions\n" in markdown
    assert "correction over the table (4 in all)" in markdown  # BM25 has no seed that could be another
    header, *rows = cells(markdown)
    assert header == ["%", "EM, top-5", "F1, top-5", "AA", "placebo (words)", "controlled AA"]
    assert rows[:3] == [
        ["bm25", "50.0", "50.0", "–", "–", "–"],
        ["dpr", "25.0", "25.0", "50.0 (n=9)", "–", "50.0 (n=9)"],
        ["eadpr", "87.5", "87.5", "75.0 (n=9)", "–", "75.0 (n=9)"],
    ]
    estimates = [(row[0], row[1].split()[0]) for row in rows if "[" in row[1]]
    assert estimates == [("bm25 − dpr", "+25.0"), ("eadpr − dpr", "+62.5")]
    assert json.loads((tmp_path / "out/metrics/reading/x/eadpr2.json").read_text())["main/dev"]["em_5"] == 1
    assert "difference" not in reported(tmp_path, matches, {"eadpr": ["eadpr"]})
