"""What stands before any model: reading a collection from DPR's files, writing distractors, joining training examples;
each per passage (distractors: per positive, examples: per question), against the time that BM25 indexing takes per
passage.

DPR's files are read twice over: passages alone, which are nearly all of Wikipedia's, and with a training question for
some four in ten of them, which is atlas' share; DPR's Wikipedia has three questions of NQ per thousand passages.

Training examples are joined from made-up questions with three positives and forty ranked passages each.
"""

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import data, made_up
from benchmarks.made_up import MadeUp
from benchmarks.runner import Comparison, Different, Goal, Side
from eadpr.atlas.generate import Atlas
from eadpr.corpus.prepare import Prepare, prepare
from eadpr.corpus.sources import File, Source
from eadpr.runtime import files
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.records import Context, Evidence, Example, Passage, Positive
from eadpr.supervision.bm25 import BM25, index
from eadpr.supervision.config import Distractors, EvidenceSettings
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.evidence import find_by_rule
from eadpr.supervision.examples import ArmExamples, make_examples
from eadpr.supervision.negatives import Negatives, mine_negatives
from eadpr.supervision.positives import Positives, find_positives


class Size(NamedTuple):
    passages: int
    questions: int  # made up


FULL = Size(passages=21_000, questions=100_000)
QUICK = Size(passages=210, questions=200)
TRAINING = "atlas/train"
EXAMPLES = "positives, negatives and examples"


def comparisons(size: Size, folder: Path) -> list[Comparison]:
    atlas, bm25 = data.atlas(size.passages), BM25(**data.section("bm25"))
    records = data.records(atlas, folder)
    passages = records / "passages.parquet"
    count = tables.count(passages, Passage)
    fresh = _numbered(folder)
    # Its first run, which is not timed, starts the JVM.
    indexing = Side(lambda out: indexed(passages, out, bm25), ready=lambda: _made(fresh()), units=count)
    source = write_dpr(records, folder / "dpr")
    given = {"records": records, "positives": folder / "positives", "evidence": folder / "evidence.parquet"}
    pairs = write_pairs(atlas, given["positives"], given["evidence"])
    given["ranking"] = folder / "bm25"  # not read, as nothing is filled
    settings = Prepare(**data.section("prepare"))
    distractors = Distractors(**data.section("distractors") | {"forms": ["cut"]})

    made = made_up.make(folder / "made-up", size.questions, size.questions // 2)
    passages_alone = source.model_copy(update={"files": source.files[:1]})

    def prepared(of: Source) -> Callable[[Path], int]:
        return lambda out: prepare(of, settings, sources=folder / "dpr", raw=folder, out=out)["passages"]

    ours = {
        "prepare, DPR's passages": Side(prepared(passages_alone), ready=fresh, units=count),
        "prepare, DPR's passages and questions": Side(prepared(source), ready=fresh, units=count),
        "distractors": Side(lambda out: write_distractors(distractors, out=out, **given), ready=fresh, units=pairs),
        EXAMPLES: Side(_joined(made), ready=fresh, units=size.questions),
    }
    expected = dict.fromkeys(ours, count) | {"distractors": pairs, EXAMPLES: size.questions}
    units = {"distractors": "positives", EXAMPLES: "questions"}
    return [
        Comparison(
            path=path,
            peer=f"BM25 indexing, per passage ({count:,})",
            goal=Goal("time", 1),
            unit=units.get(path, "passages"),
            ours=side,
            theirs=indexing,
            same=_complete(expected[path], count),
        )
        for path, side in ours.items()
    ]


def _complete(ours: int, theirs: int) -> Callable[[Any, Any], str]:
    """They do not compute the same; both must have done all of their work."""

    def same(done: int, indexed: int) -> str:
        if (done, indexed) != (ours, theirs):
            raise Different(f"ours did {done:,} of {ours:,}, BM25 indexed {indexed:,} of {theirs:,}")
        return "all done"

    return same


def _joined(made: MadeUp) -> Callable[[Path], int]:
    """Finds positives, mines negatives and joins examples; gives the number of questions in them."""
    sets = Sets(train=[made_up.SET], evaluate=[], annotator=[])
    positives = Positives(**data.section("positives"))
    negatives = Negatives(kind="ranked", depth=100, skip=0, keep=30, exclude=["answer"], margin=None, seed=0)
    chosen = {"strategy": "sentence", "forms": {"cut": 1.0}, "positive": "random", "questions": None, "seed": 1}
    examples = ArmExamples(**chosen, placebos=None)

    def run(out: Path) -> int:
        find_positives(made.records, made.ranking, out / "positives", positives=positives, sets=sets)
        mine_negatives(made.records, out / "positives", made.ranking, out / "negatives", negatives=negatives)
        make_examples(out / "positives", out / "negatives", made.distractors, out / "examples", examples=examples)
        return tables.count(out / "examples" / "examples.parquet", Example)

    return run


def _numbered(folder: Path) -> Callable[[], Path]:
    """A new path at every call."""
    numbers = itertools.count()
    return lambda: folder / f"made-{next(numbers)}"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def indexed(passages: Path, folder: Path, bm25: BM25) -> int:
    """From passages.parquet to an index, as the stage `bm25` does, which raises where documents are missing from it."""
    index(passages, folder, bm25=bm25)
    return tables.count(passages, Passage)


def write_dpr(records: Path, folder: Path) -> Source:
    """Passages and training questions as DPR's files."""
    folder.mkdir()
    with (folder / "psgs.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(("id", "text", "title"))
        passages = records / "passages.parquet"
        writer.writerows((p.id, p.text, p.title) for p in tables.rows(passages, Passage))
    texts = {p.id: {"passage_id": p.id, "title": p.title, "text": p.text} for p in tables.rows(passages, Passage)}
    positives: dict[str, list[dict[str, str]]] = {}
    for context in tables.rows(records / "contexts.parquet", Context):
        positives.setdefault(context.question_id, []).append(texts[context.passage_id])
    asked = questions.read_questions(
        records / "questions.parquet", questions.read_question_ids(records / "question_sets.parquet", [TRAINING])
    )
    items = [{"question": q.question, "answers": q.answers, "positive_ctxs": positives[q.id]} for q in asked]
    files.write_json(folder / "train.json", items)
    question_set, split = TRAINING.split("/")
    training = File(kind="training", path="train.json", set=question_set, split=split)
    return Source(format="dpr", files=[File(kind="passages", path="psgs.tsv"), training])


def write_pairs(atlas: Atlas, positives: Path, evidence: Path) -> int:
    """Every question of one fact with its positive and gold evidence; returns their number."""
    settings = EvidenceSettings(**data.section("evidence"))
    pairs = list(data.pairs(atlas))
    given = (Positive(pair.question.id, pair.passage.id, "given", pair.gold) for pair in pairs)
    tables.write(positives / "positives.parquet", Positive, given)
    return tables.write(evidence, Evidence, (find_by_rule(pair, "gold", settings) for pair in pairs))
