"""A collection small enough to evaluate by hand, as the files that `evaluate` and `report` read.

Five questions in two sets: `main/dev` holds q1 to q4, `more/dev` q4 and q5.
q1 (who) has the answer in p1 and p2, p1 is its given positive; q2 (when) has it in p3, found by BM25 only; q3 (which)
has no answers and the given positive p4; q4 (other) has two supporting passages p1, p5, the answer in p5 and p4 as one
more given positive; q5 (who) a regular expression that p2 matches."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eadpr.evaluation import evaluate
from eadpr.evaluation.config import Evaluate
from eadpr.evaluation.outcomes import MeasuredQuestions, Values, write
from eadpr.readers.config import Read
from eadpr.report.config import MeasuredBy, ReportArms, ReportInputs
from eadpr.report.plots import LOSS
from eadpr.report.summary import nest_means, read_means
from eadpr.robustness.config import Robustness
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import (
    Context,
    Evidence,
    PairScore,
    Passage,
    Positive,
    Question,
    Ranked,
    ScoredSpan,
    SetMember,
)

SETS = Sets(train=[], evaluate=["main/dev", "more/dev"], annotator=[])
EVALUATE = Evaluate(top_k=[1, 2, 5], mrr_at=3, ndcg_at=3, recall_at=[2], all_at=[2, 3])
NOTHING = MeasuredBy(by=[], trainings={})
COUNTS = Robustness(counts=[0, 1, 3])
READ = Read(top_k=[5], paths=3, answer_tokens=10, path_answer_tokens=16, output_tokens=10)
REPORT = ReportArms(
    trainings={"dpr": ["dpr"], "eadpr": ["eadpr"]}, fused=[], columns=["top1", "top2", "mrr3", "aa", "aa_evidence"],
    differences=["top1", "mrr3", "aa"], by={"type": ["aa", "top1"]}, baseline="dpr", compare={}, resamples=200,
    confidence=0.95, seed=0, one_hop={}, robustness=NOTHING, reading=NOTHING, of_paths=[], strategy="sentence",
    annotated=False, bases=["scratch"], seeds=[1],
)  # fmt: skip

PASSAGES = [
    Passage("p1", "Rome", "It was founded by Romulus.", None),
    Passage("p2", "Romulus", "Romulus, a king, had a twin in 753 BC.", None),
    Passage("p3", "Years", "In 1969 men landed on the moon.", None),
    Passage("p4", "Romulus", "A title with the answer counts for nothing.", None),
    Passage("p5", "Remus", "Remus was his twin.", None),
]
QUESTIONS = [
    Question("q1", "Who founded Rome?", ["Romulus"], "string", None, None, None, None),
    Question("q2", "when was the moon landing", ["1969"], "string", None, None, None, None),
    Question("q3", "in which film", [], "string", None, None, None, None),
    Question("q4", "name the twin of Rome's founder", ["Remus"], "string", None, None, "bridge", ["p1", "p5"]),
    Question("q5", "whose twin was he", [r"a k\w+"], "regex", None, None, None, None),
]
MEMBERS = [("main", "q1"), ("main", "q2"), ("main", "q3"), ("main", "q4"), ("more", "q4"), ("more", "q5")]
POSITIVES = [
    Positive("q1", "p1", "given", None), Positive("q2", "p3", "bm25", None), Positive("q3", "p4", "given", None),
    Positive("q4", "p1", "given", None), Positive("q4", "p5", "given", None), Positive("q4", "p4", "given", None),
    Positive("q5", "p2", "bm25", None),
]  # fmt: skip
# Of q1 "Romulus", late; of q2 "1969" and of q5 "a king", early; of q3 and of q4's first positive nothing is known.
EVIDENCE = [
    Evidence("q1", "p1", "sentence", "", [ScoredSpan(0, 2, None), ScoredSpan(18, 25, None)], [1], None),
    Evidence("q1", "p1", "pseudo", "", [ScoredSpan(0, 2, None)], [0], None),
    Evidence("q2", "p3", "sentence", "", [ScoredSpan(3, 7, None)], [0], None),
    Evidence("q3", "p4", "pseudo", "", [ScoredSpan(0, 7, None)], [0], None),
    Evidence("q4", "p1", "sentence", "", [ScoredSpan(0, 2, None)], [], None),
    Evidence("q4", "p5", "sentence", "", [ScoredSpan(0, 5, None)], [0], None),
    Evidence("q5", "p2", "sentence", "", [ScoredSpan(9, 15, None)], [0], None),
]
RANKINGS = {  # q2 has no ranking with dpr
    "bm25": {"q1": "p4 p2 p1", "q2": "p1 p3", "q3": "p4 p1", "q4": "p5 p1 p2", "q5": "p1"},
    "dpr": {"q1": "p4 p2 p1", "q3": "p1 p4", "q4": "p1 p2 p5", "q5": "p5 p4 p3 p1 p2"},
    "eadpr": {"q1": "p1 p2 p4", "q2": "p3 p1", "q3": "p1 p2", "q4": "p5 p1 p3", "q5": "p2 p1"},
}
PAIRS = {
    "dpr": [
        ("q1", "p1", {"positive": 2.0, "masked": 1.0, "distractor": 2.5}),
        ("q2", "p3", {"positive": 1.0, "masked": 1.0}),
        ("q4", "p1", {"positive": 3.0, "masked_cut": 3.0, "distractor_cut": 3.0}),
        ("q4", "p5", {"positive": 3.0, "masked": 2.0, "distractor": 2.0}),
        ("q5", "p2", {"positive": -1.0, "masked": 0.0, "distractor": -2.0}),
    ],
    "eadpr": [
        ("q1", "p1", {"positive": 5.0, "masked": 1.0, "distractor": 0.5}),
        ("q2", "p3", {"positive": 1.5, "masked": 1.0}),
        ("q4", "p1", {"positive": 3.0, "masked_cut": 3.0, "distractor_cut": 3.0}),
        ("q4", "p5", {"positive": 3.0, "masked": 2.0, "distractor": 2.0}),
        ("q5", "p2", {"positive": 2.0, "masked": 0.0, "distractor": 1.0}),
    ],
}


def starred(markdown: str) -> list[str]:
    """Labels of the rows with a difference that holds after Holm's correction."""
    return [line.split("|")[1].strip() for line in markdown.splitlines() if "* [" in line]


UNHELD = "1 of 6 questions have positives that hold no answer (they may say it in other words), as q3, 'who?': ['Ada']"


def write_inputs(folder: Path) -> None:
    """records/, positives/, evidence.parquet, rankings/<name>/ and pairs/<arm>.parquet below `folder`."""
    records = folder / "records"
    tables.write(records / "passages.parquet", Passage, PASSAGES)
    tables.write(records / "questions.parquet", Question, QUESTIONS)
    members = [SetMember(name, "dev", question_id) for name, question_id in MEMBERS]
    tables.write(records / "question_sets.parquet", SetMember, members)
    tables.write(records / "contexts.parquet", Context, [])
    sets = {name: {"questions": 4 if name == "main/dev" else 150} for name in SETS.evaluate}
    files.write_json(records / "report.json", {"unheld": UNHELD, "sets": sets})
    tables.write(folder / "positives" / "positives.parquet", Positive, POSITIVES)
    tables.write(folder / "evidence.parquet", Evidence, EVIDENCE)
    for name, ranking in RANKINGS.items():
        rows = [
            Ranked(question_id, passage_id, rank, 10.0 - rank)
            for question_id, passages in ranking.items()
            for rank, passage_id in enumerate(passages.split(), start=1)
        ]
        tables.write(folder / "rankings" / name / "evaluate.parquet", Ranked, rows)
    for arm, pairs in PAIRS.items():
        rows = [PairScore(q, p, variant, score) for q, p, scores in pairs for variant, score in scores.items()]
        tables.write(folder / "pairs" / f"{arm}.parquet", PairScore, rows)


def evaluated(folder: Path, name: str, **changes) -> dict[str, int]:
    """Evaluate one of `RANKINGS` to outcomes/<name>.parquet."""
    arguments = {
        "records": folder / "records", "positives": folder / "positives", "ranking": folder / "rankings" / name,
        "pairs": folder / "pairs" / f"{name}.parquet" if name in PAIRS else None,
        "outcomes": folder / "outcomes" / f"{name}.parquet", "settings": EVALUATE, "sets": SETS,
    }  # fmt: skip
    return evaluate.run(**(arguments | changes))


def summary(path: Path, question_sets: Sequence[str]) -> dict[str, Any]:
    """A table of outcomes as the report's JSON file has it."""
    return nest_means(read_means({path.stem: path}, question_sets))


def write_outcomes(
    path: Path, by_metric: Mapping[str, Sequence[float]], kinds: Sequence[str] = (), name: str = "main/dev"
) -> None:
    """Values of each metric for questions q0, q1, ... of a set; `kinds` are their hop types."""
    count = len(next(iter(by_metric.values())))
    kinds = kinds or [None] * count
    ids, types = [f"q{i}" for i in range(count)], ["who"] * count
    columns = [pa.array(column, pa.string()) for column in (ids, types, kinds, [None] * count)]
    table = pa.table(columns, names=["question_id", "type", "hop_type", "relation"])
    values = {metric: Values(np.arange(count), np.array(row, dtype=np.float64)) for metric, row in by_metric.items()}
    write(path, MeasuredQuestions(table, {name: np.arange(count)}), values)


def report_inputs(folder: Path) -> ReportInputs:
    changed = {"evidence": folder / "evidence.parquet", "accuracy": folder / "accuracy.json"}
    return ReportInputs(**{name: folder / name for name in ReportInputs._fields} | changed)


def write_training(folder: Path, arm: str, *, trained: Mapping, negatives: Mapping, examples: Mapping) -> None:
    """Write what the stages before the report log and count for an arm of five steps."""
    log = folder / "training" / arm
    files.write_text(log / LOSS, "step\tloss\n" + "".join(f"{i}\t{2 / i}\n" for i in range(1, 6)))
    files.write_json(log / "metrics.json", {"steps": 5, "questions": 9, **trained})
    files.write_json(folder / "negatives" / arm / "report.json", {"questions": 9, **negatives})
    files.write_json(folder / "examples" / arm / "report.json", {"train": {"examples": 9, **examples}})


def cells(markdown: str) -> list[list[str]]:
    """Return the cells of all tables, row by row, without the lines beneath their heads."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("|:")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def write_config(path: Path, **sections: object) -> None:
    path.write_text(json.dumps({name: section.model_dump() for name, section in sections.items()}), encoding="utf-8")
