"""The collection of `tests.evaluated` with hostile texts, measured and reported, for the explorer; and its page.

Ranks of first hits in main/dev (by hand, from `evaluated.RANKINGS`): bm25 2 2 1 1, dpr 2 - 2 3, eadpr 1 1 - 1.
"""

from pathlib import Path
from unittest.mock import patch

from eadpr.evaluation.question_tables import DUPLICATES, RankedAmong, ReadAnswer, ranking_among
from eadpr.explorer import explore
from eadpr.explorer.rankings import ExploreInputs
from eadpr.report import write as report
from eadpr.report.config import MeasuredBy
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.records import (
    Distractor,
    Evidence,
    NearDuplicate,
    PairScore,
    Passage,
    Positive,
    Question,
    Ranked,
    ScoredSpan,
    Span,
)
from tests.evaluated import (
    EVIDENCE,
    PASSAGES,
    POSITIVES,
    QUESTIONS,
    RANKINGS,
    REPORT,
    SETS,
    evaluated,
    report_inputs,
    write_inputs,
    write_training,
)

HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">{{data}}<!--"
TEXT = f"🜂 𝔘 It was founded by Romulus. {HOSTILE}"  # two characters that are two of JavaScript's each
QUESTION = f'Who founded <b>Rome</b>, "the, city"? {HOSTILE}'
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"><rect width="8" height="4"/></svg>'
DISTRACTORS = {"main/dev": {"sentence": {"cut": {"pairs": 4, "kept": 3, "dropped": {"holds_answer": 1}}}}}

# Of eadpr's rankings; the near-duplicates of q1 and q4 are written q1#0. q1's stands before its positive.
COUNTS = [0, 1, 3]
AMONG = {
    1: {"q1": "q1#0 p1 p2 p4", "q2": "p3 q1#0 p1", "q3": "p1 p2", "q4": "p5 p1 q4#0 p3", "q5": "p2 p1"},
    3: {"q1": "q1#0 q1#1 p1 p2", "q2": "p3 q1#0 p1", "q3": "p1 p2", "q4": "p5 p1 q4#0 p3", "q5": "p2 p1"},
}
NEAR = [
    NearDuplicate("q1", "p1", 0, "removed", "Rome", f"It was founded. {HOSTILE}"),
    NearDuplicate("q1", "p1", 1, "removed", "Rome", "It was."),
    NearDuplicate("q4", "p5", 0, "removed", "Remus", "He was a twin."),
]
READ = [("q1", 1, "Romulus", True), ("q1", 5, "<b>Remus</b>", False), ("q2", 1, "", False)]
WITH_ALL = REPORT.model_copy(
    update={
        "robustness": MeasuredBy(by=["removed"], trainings={"eadpr": ["eadpr"]}),
        "reading": MeasuredBy(by=["extractive", "hops"], trainings={"bm25": ["bm25"], "gold": ["gold"]}),
        "of_paths": ["hops"],
    }
)


def write(folder: Path) -> ExploreInputs:
    """All that the stage reads, made by the stages before it."""
    write_inputs(folder)
    passages = [Passage("p1", HOSTILE, TEXT, None), *PASSAGES[1:]]
    tables.write(folder / "records" / "passages.parquet", Passage, passages)
    first = QUESTIONS[0]._replace(question=QUESTION, relation="<i>founder</i>")
    asked = [first, QUESTIONS[1]._replace(relation="P112"), *QUESTIONS[2:]]
    tables.write(folder / "records" / "questions.parquet", Question, asked)
    start = TEXT.index("It was")
    gold = Positive("q1", "p1", "given", [Span(start, TEXT.index("Romulus") + 8)])
    tables.write(folder / "positives" / "positives.parquet", Positive, [gold, *POSITIVES[1:]])
    chosen = [ScoredSpan(start, start + 2, None), ScoredSpan(start + 18, start + 25, None)]
    placebo = Evidence("q1", "p1", "placebo", "", [ScoredSpan(start + 3, start + 6, None)], [0], None)
    evidence = [EVIDENCE[0]._replace(spans=chosen), placebo, *EVIDENCE[1:]]
    tables.write(folder / "evidence.parquet", Evidence, evidence)
    cut = Distractor("q1", "p1", "sentence", 0, "cut", "It was founded by .", [Span(*chosen[1][:2])])
    tables.write(folder / "distractors" / "distractors.parquet", Distractor, [cut])
    files.write_json(folder / "distractors" / "report.json", DISTRACTORS)
    for name in RANKINGS:
        evaluated(folder, name)
    for arm, (first, other) in {"dpr": (1.5, 1.5), "eadpr": (4.75, 2.0)}.items():  # only for the page
        scores = [*tables.rows(path := folder / "pairs" / f"{arm}.parquet", PairScore)]
        more = [PairScore("q1", "p1", "placebo", first), PairScore("q4", "p5", "placebo", other)]
        tables.write(path, PairScore, [*scores, *more])
    _write_among(folder)
    for reader, count in (("extractive", 3), ("hops", 1)):
        rows = [ReadAnswer(*row) for row in READ[:count]]
        tables.write(folder / "outcomes" / "answers" / reader / "bm25.parquet", ReadAnswer, rows)
    for arm in REPORT.trainings:
        refused = {"refused": {"holds_answer": 3}}
        write_training(folder, arm, trained={"without_distractor": 2}, negatives=refused, examples={})
    files.write_json(folder / "accuracy.json", {})
    with patch("eadpr.report.plots.svg", return_value=SVG):  # takes longer than all else
        report.run(report_inputs(folder), folder / "toy", folder / "toy.json", REPORT, SETS)
    return paths(folder)


def paths(folder: Path) -> ExploreInputs:
    names = ("records", "positives", "evidence.parquet", *ExploreInputs._fields[3:-1], "toy")
    return ExploreInputs(*(folder / name for name in names))


def _write_among(folder: Path) -> None:
    """What `robustness` writes."""
    out = folder / "outcomes" / "robustness" / "removed" / "eadpr"
    tables.write(out / DUPLICATES, NearDuplicate, NEAR)
    for count, ranking in AMONG.items():
        every = [
            (question_id, *(one.split("#") if "#" in one else (one, None)), rank, 10.0 - rank)
            for question_id, ids in ranking.items()
            for rank, one in enumerate(ids.split(), start=1)
        ]
        rows = [
            RankedAmong(q, None, one, int(n), *of) if n else RankedAmong(q, one, None, None, *of)
            for q, one, n, *of in every
        ]
        tables.write(ranking_among(out, count), RankedAmong, rows)
        of_corpus = [Ranked(row.question_id, row.passage_id, *row[4:]) for row in rows if row.passage_id]
        tables.write(folder / "among" / str(count) / "evaluate.parquet", Ranked, of_corpus)
        measured = {"ranking": folder / "among" / str(count), "outcomes": out / f"{count}.parquet"}
        evaluated(folder, "eadpr", pairs=None, **measured)


def page(folder: Path) -> Path:
    inputs = write(folder)
    explore.run(inputs, folder / "toy.html", "toy <b>&", WITH_ALL, SETS, counts=COUNTS)
    return folder / "toy.html"
