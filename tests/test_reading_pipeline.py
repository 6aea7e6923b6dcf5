"""Two hops, readers and readers of paths in the real pipeline, added by one `dvc exp run` at toy size."""

import json
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest

from eadpr.readers.evaluate import exact_match, f1
from eadpr.readers.predictions import Prediction
from eadpr.storage import tables
from eadpr.storage.records import Passage, Question, Ranked
from eadpr.two_hops.config import RankedPath
from tests.small_pipeline import Project, create, ran

pytestmark = [pytest.mark.readers, pytest.mark.pipeline]

# Two-hop questions alone, 65 to train on and 65 to evaluate, whose evidence is given.
TOY = {
    "annotator.model": "none", "evidence.strategies": ["gold"], "probe.strategy": "gold", "probe.placebos": [],
    "examples.strategy": "gold", "arms.eadpr.loss.balance": "none", "examples.positive": "each", "train.steps": 2,
    "train.validation_questions": 0, "beam.width": 5, "read.top_k": [2], "read.paths": 5,
    "collections.atlas.sets.train": ["twohop/train"], "collections.atlas.sets.evaluate": ["twohop/test"],
    "collections.atlas.sets.annotator": [],
}  # fmt: skip
EXPERIMENT = [
    "~active.dpr",
    "+readers.extractive={ranking: bm25, init: models/base, steps: 2, batch_size: 4, passages: 4, tokens: 96}",
    "+multihop.mdr={of: eadpr, init: base}",
    "+readers.paths={kind: paths, ranking: mdr, init: models/base, steps: 2, batch_size: 4}",
    "reading.readers=[extractive, paths]", "reading.rankings=[mdr]",
]  # fmt: skip
STAGES = {
    *(f"{stage}_multihop@mdr" for stage in ("train", "encode", "retrieve", "evaluate")),
    *(f"{stage}@{reader}-mdr" for stage in ("read", "evaluate_reading") for reader in ("extractive", "paths")),
    *("reader@extractive", "reader@paths", "report", "explore"),
}


class Built(NamedTuple):
    """`questions` are those evaluated, in their order; `data` is data/atlas."""

    project: Project
    data: Path
    questions: dict[str, Question]
    passages: dict[str, Passage]
    ran: list[str]

    def metrics(self, path: str) -> dict:
        return json.loads((self.project.folder / f"reports/atlas/metrics/{path}.json").read_text())["twohop/test"]

    def cells(self, section: str, name: str) -> list[str]:
        """The row of the first table of a section of the report that begins with the name."""
        text = (self.project.folder / "reports/atlas/table.md").read_text(encoding="utf-8")
        lines = text.split(f"# {section}", 1)[1].splitlines()
        rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        return next(row[1:] for row in rows if row[0] == name)


@pytest.fixture(scope="module")
def added(tmp_path_factory) -> Built:
    project = create(tmp_path_factory.mktemp("reading") / "project")
    project.set(**TOY)
    project.commit("toy")
    done = project.run("dvc", "exp", "run", *(word for setting in EXPERIMENT for word in ("-S", setting)))
    data = project.folder / "data" / "atlas"
    evaluated = {row.question_id for row in tables.rows(data / "rankings/bm25/evaluate.parquet", Ranked)}
    questions = {q.id: q for q in tables.rows(data / "records/questions.parquet", Question) if q.id in evaluated}
    passages = {p.id: p for p in tables.rows(data / "records/passages.parquet", Passage)}
    return Built(project, data, questions, passages, ran(done.stdout))


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def test_each_stage_runs_once_and_then_there_is_nothing_to_do(added):
    assert set(added.ran) >= STAGES
    assert (len(set(added.ran)), added.project.dvc("repro")) == (len(added.ran), [])
    new = added.project.run("git", "status", "--porcelain", "--untracked-files=normal").stdout.split("\n")
    assert {line[3:] for line in new if line.startswith("??")} <= {"dvc.lock", "metrics/", ".dvc/.gitignore"}


def test_paths_of_two_passages_make_the_ranking_and_the_metrics(added):
    rows = tables.rows(added.data / "rankings/mdr/paths/evaluate.parquet", RankedPath)
    paths = {q: [row.passage_ids for row in best] for q, best in groupby(rows, key=attrgetter("question_id"))}
    assert list(paths) == list(added.questions)
    for best in paths.values():
        assert len(best) == len(set(map(tuple, best))) == 20
        assert all(len(set(path)) == 2 for path in best)
    ranking = tables.rows(added.data / "rankings/mdr/evaluate.parquet", Ranked)
    ranked = {q: [row.passage_id for row in best] for q, best in groupby(ranking, key=attrgetter("question_id"))}
    assert ranked == {q: list(dict.fromkeys(i for path in best for i in path)) for q, best in paths.items()}
    metrics = added.metrics("mdr")
    first = {q: {i for path in best[:10] for i in path} for q, best in paths.items()}
    hops = {q: set(question.hops) for q, question in added.questions.items()}
    assert metrics["all20"] == pytest.approx(fmean(first[q] >= hops[q] for q in hops), abs=1e-6)
    assert {kind: values["n"] for kind, values in metrics["by_hop_type"].items()} == {"bridge": 40, "comparison": 25}
    assert added.cells("atlas", "mdr")[:3] == [percent(metrics[f"top{k}"]) for k in (1, 5, 20)]


def test_answers_are_read_in_ranked_passages_and_measured(added):
    learnt = json.loads((added.data / "reader_logs/extractive/metrics.json").read_text())
    assert learnt["steps"] == 2
    assert learnt["questions"] > learnt["questions_left_out"]
    ranked = {row[:2] for row in tables.rows(added.data / "rankings/mdr/evaluate.parquet", Ranked) if row.rank <= 2}
    rows = list(tables.rows(added.data / "readings/extractive/mdr/predictions.parquet", Prediction))
    by_paths = tables.rows(added.data / "readings/paths/mdr/predictions.parquet", Prediction)
    for read in (rows, by_paths):
        assert [row.question_id for row in read] == list(added.questions)
    for row in rows:
        assert (row.question_id, row.passage_id) in ranked
        assert row.answer == added.passages[row.passage_id].text[row.start : row.end] != ""
    metrics = added.metrics("reading/extractive/mdr")
    for name, measure in (("em_2", exact_match), ("f1_2", f1)):
        naive = fmean(measure(row.answer, added.questions[row.question_id].answers) for row in rows)
        assert metrics[name] == pytest.approx(naive, abs=1e-6)
    assert (metrics["n"], metrics["n_read"]) == (65, 65)
    cells = [percent(metrics[metric]) for metric in ("em_2", "f1_2")]
    assert added.cells("Answers of the reader extractive", "mdr")[:2] == cells
