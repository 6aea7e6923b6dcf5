"""The collection of `tests.evaluated` with hostile texts, measured and reported, for the explorer; and its page.

Ranks of first hits in main/dev (by hand, from `evaluated.RANKINGS`): bm25 2 2 1 1, dpr 2 - 2 3, eadpr 1 1 - 1.
"""

from pathlib import Path
from unittest.mock import patch

from eadpr import files, tables
from eadpr.evaluation import plot_data, report
from eadpr.evaluation.config import ReportArms
from eadpr.explorer import explore
from eadpr.explorer.gather import ExploreInputs
from eadpr.records import Distractor, Evidence, Passage, Positive, Question, ScoredSpan, Span
from tests.evaluated import EVIDENCE, PASSAGES, POSITIVES, QUESTIONS, RANKINGS, REPORT, SETS, evaluated, write_inputs

HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">{{data}}<!--"
TEXT = f"🜂 𝔘 It was founded by Romulus. {HOSTILE}"  # two characters that are two of JavaScript's each
QUESTION = f'Who founded <b>Rome</b>, "the, city"? {HOSTILE}'
DISTRACTORS = {"main/dev": {"sentence": {"cut": {"pairs": 4, "kept": 3, "dropped": {"holds_answer": 1}}}}}


def write(folder: Path, settings: ReportArms = REPORT) -> ExploreInputs:
    """All that the stage reads, made by the stages before it."""
    write_inputs(folder)
    passages = [Passage("p1", HOSTILE, TEXT, None), *PASSAGES[1:]]
    tables.write(folder / "records" / "passages.parquet", Passage, passages)
    first = QUESTIONS[0]._replace(question=QUESTION, relation="<i>founder</i>")
    tables.write(folder / "records" / "questions.parquet", Question, [first, *QUESTIONS[1:]])
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
    for arm in settings.trainings:
        log = folder / "training" / arm
        files.write_text(log / plot_data.LOSS, "step\tloss\n" + "".join(f"{i}\t{2 / i}\n" for i in range(1, 6)))
        files.write_json(log / "metrics.json", {"steps": 5, "questions": 9, "without_distractor": 2})
        files.write_json(folder / "negatives" / arm / "report.json", {"refused": {"holds_answer": 3}, "questions": 9})
        files.write_json(folder / "examples" / arm / "report.json", {"train": {"examples": 9}})
    files.write_json(folder / "accuracy.json", {})
    names = report.ReportInputs._fields
    changed = {"evidence": folder / "evidence.parquet", "accuracy": folder / "accuracy.json"}
    inputs = report.ReportInputs(**{name: folder / name for name in names} | changed)
    with patch("eadpr.evaluation.plots.svg", return_value=""):  # takes longer than all else
        report.run(inputs, folder / "toy", folder / "toy.json", settings, SETS)
    names = ("records", "positives", "evidence.parquet", *ExploreInputs._fields[3:-1], "toy")
    return ExploreInputs(*(folder / name for name in names))


def page(folder: Path) -> Path:
    inputs = write(folder)
    explore.run(inputs, folder / "toy.html", "toy <b>&", REPORT, SETS)
    return folder / "toy.html"
