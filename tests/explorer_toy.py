"""The collection of `tests.evaluated` with hostile texts, measured and reported, for the explorer; and its page.

Ranks of first hits in main/dev (by hand, from `evaluated.RANKINGS`): bm25 2 2 1 1, dpr 2 - 2 3, eadpr 1 1 - 1.
"""

from pathlib import Path

from eadpr.explorer import explore
from eadpr.explorer.gather import ExploreInputs
from eadpr.report import write as report
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.rankings import SENTENCES, MatchedSentence
from eadpr.storage.records import Distractor, Evidence, PairScore, Passage, Positive, Question, Ranked, ScoredSpan, Span
from tests import evaluated as toy

HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">{{data}}<!--"
TEXT = f"=🜂 𝔘 It was founded by Romulus. {HOSTILE}"  # a formula; two characters that are two of JavaScript's each
QUESTION = f'Who founded <b>Rome</b>, "the, city"? {HOSTILE}'
ABOUT = {"commit": "1234567", "date": "2026-11-28", "edits": ["loss.tau1=0.5"], "changed": ["train.steps=5"]}
DISTRACTORS = {"main/dev": {"sentence": {"cut": {"pairs": 4, "kept": 3, "dropped": {"holds_answer": 1}}}}}


def write(folder: Path) -> ExploreInputs:
    """All that the stage reads, made by the stages before it."""
    toy.write_inputs(folder)
    passages = [Passage("p1", HOSTILE, TEXT, None), *toy.PASSAGES[1:]]
    tables.write(folder / "records" / "passages.parquet", Passage, passages)
    first = toy.QUESTIONS[0]._replace(question=QUESTION, relation="<i>founder</i>")
    questions = [first, toy.QUESTIONS[1]._replace(relation="P112"), *toy.QUESTIONS[2:]]
    tables.write(folder / "records" / "questions.parquet", Question, questions)
    start = TEXT.index("It was")
    gold = Positive("q1", "p1", "given", [Span(start, TEXT.index("Romulus") + 8)])
    tables.write(folder / "positives" / "positives.parquet", Positive, [gold, *toy.POSITIVES[1:]])
    chosen = [ScoredSpan(start, start + 2, None), ScoredSpan(start + 18, start + 25, None)]
    placebo = Evidence("q1", "p1", "placebo", "", [ScoredSpan(start + 3, start + 6, None)], [0], None)
    evidence = [toy.EVIDENCE[0]._replace(spans=chosen), placebo, *toy.EVIDENCE[1:]]
    tables.write(folder / "evidence.parquet", Evidence, evidence)
    cut = Distractor("q1", "p1", "sentence", 0, "cut", "It was founded by .", [Span(*chosen[1][:2])])
    tables.write(folder / "distractors" / "distractors.parquet", Distractor, [cut])
    files.write_json(folder / "distractors" / "report.json", DISTRACTORS)
    for name in toy.RANKINGS:
        toy.evaluated(folder, name)
    for arm, scores in {"dpr": [2.4, 2.2, 2.0, 1.8, 1.6], "eadpr": [5.0, 4.0, 1.0]}.items():
        path = folder / "rankings" / arm / "evaluate.parquet"
        ranked = [row._replace(score=scores[row.rank - 1]) for row in tables.rows(path, Ranked)]
        tables.write(path, Ranked, ranked)
    matched = MatchedSentence("q1", "p4", 1, 0, len("A title"), 2.5)
    tables.write(folder / "rankings" / "dpr" / SENTENCES, MatchedSentence, [matched])
    for arm, (first, second) in {"dpr": (1.5, 1.5), "eadpr": (4.75, 2.0)}.items():  # only for the page
        scores = [*tables.rows(path := folder / "pairs" / f"{arm}.parquet", PairScore)]
        more = [PairScore("q1", "p1", "placebo", first), PairScore("q4", "p5", "placebo", second)]
        tables.write(path, PairScore, [*scores, *more])
    for arm in toy.REPORT.trainings:
        refused = {"refused": {"holds_answer": 3}}
        toy.write_training(folder, arm, trained={"without_distractor": 2}, negatives=refused, examples={})
    files.write_json(folder / "accuracy.json", {})
    report.run(toy.report_inputs(folder), folder / "toy", folder / "toy.json", toy.REPORT, toy.SETS)
    return paths(folder)


def paths(folder: Path) -> ExploreInputs:
    names = ("records", "positives", "evidence.parquet", *ExploreInputs._fields[3:-1], "toy")
    return ExploreInputs(*(folder / name for name in names))


def page(folder: Path) -> Path:
    inputs = write(folder)
    explore.run(inputs, folder / "toy.html", "toy <b>&", toy.REPORT, toy.SETS, ABOUT)
    return folder / "toy.html"
