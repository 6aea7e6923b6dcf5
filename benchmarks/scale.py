"""Cost as work grows: every stage that streams, run as its command on atlas of several sizes: `make bench-scale`.

Time per passage is what a larger collection adds: the processor's time of a run less that of the smallest, by the
passages more.
Peak memory is that of the stage's process, pages of mapped files and of the JVM included. BM25 and dense retrieval rank
passages for the same number of questions at every size; the other stages meet all of the collection's, which grow with
it. Encoder and annotator are those of the smallest size, the annotator hardly trained, which changes no time.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "scale.md"
USAGE = ROOT / "benchmarks" / "usage.py"
START = 2_100  # passages of the smallest run, which takes little more than starting
SIZES = (10_080, 100_800)
MILLION = 1_000_020
WIKIPEDIA = 21_000_000
MOST_TIME = 1.2  # the time per passage at the largest size over that at the smallest
MEBI = 2**20
LIBRARIES = ("torch", "pyarrow", "pyserini")

Paths = Callable[[str], Path]  # a place in the folder of a collection


class Stage(NamedTuple):
    """`options` of its command by name, places in the collection's folder; `config`: its file of `params.configs`."""

    name: str
    config: str
    options: dict[str, str]


FEW = "few"  # the records, with fewer questions
JOINED = {"records": "records", "positives": "positives"}
EXAMPLES = {"positives": "positives", "negatives": "negatives", "distractors": "distractors", "out": "examples"}
STAGES = (
    Stage("prepare", "prepare.json", {"sources": "", "raw": "", "out": "records"}),
    Stage("bm25", "bm25.json", {"records": FEW, "out": "rankings/bm25"}),
    Stage("positives", "positives.json", {"records": "records", "ranking": "rankings/bm25", "out": "positives"}),
    Stage("evidence", "evidence.json", {**JOINED, "annotator": "../annotator", "out": "evidence.parquet"}),
    Stage("distractors", "distractors.json", {**JOINED, "evidence": "evidence.parquet", "out": "distractors"}),
    Stage("negatives", "dpr/negatives.json", {**JOINED, "ranking": "rankings/bm25", "out": "negatives"}),
    Stage("examples", "eadpr/examples.json", EXAMPLES),
    Stage("encode", "encode.json", {"records": "records", "model": "../base", "out": "vectors"}),
    Stage(
        "retrieve", "retrieve.json", {"records": FEW, "model": "../base", "vectors": "vectors", "out": "rankings/dpr"}
    ),
)
ANNOTATOR = Stage("annotator", "annotator.json", {**JOINED, "out": "../annotator"})
BASE = Stage("base", "bases/base.json", {"records": "records", "out": "../base"})


class Cost(NamedTuple):
    stage: str
    passages: int
    seconds: float
    resident: int  # bytes at most


def main(
    passages: list[int] = typer.Option(list(SIZES), min=1, help="Sizes of atlas, ascending."),
    million: bool = typer.Option(False, help=f"{MILLION:,} passages as well."),
    without: list[str] = typer.Option([], help="Stages to leave out, with those that need what they write."),
    start: int = typer.Option(START, min=1, help="Passages of the run whose time is taken off the others'."),
    questions: int = typer.Option(1_000, min=1, help="Ranked for, at most, of each question set."),
    folder: Path = typer.Option(None, help="Where to put the collections; a temporary folder by default."),
    out: Path = typer.Option(DOCUMENT, help="The document."),
) -> None:
    from benchmarks.__main__ import machine
    from eadpr.runtime.files import write_text

    sizes = [start, *passages, *[MILLION] * million]
    if sizes != sorted(set(sizes)):
        raise typer.BadParameter(f"sizes must ascend, found {sizes}")
    if unknown := set(without) - {stage.name for stage in STAGES}:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: known are {', '.join(s.name for s in STAGES)}")
    stages = remaining_stages(without)
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        for size in sizes:
            costs += measure_stages(stages, size, Path(temporary), questions)
    about = f"{machine(LIBRARIES)}; {datetime.date.today().isoformat()}; {questions:,} questions of each set ranked."
    write_text(out, document(costs, about, name=out.stem))
    typer.echo(table(costs))


def remaining_stages(without: Collection[str]) -> list[Stage]:
    """The stages but for those named and all that need their output."""
    stages, missing = [], set()
    for stage in STAGES:
        if stage.name in without or missing & {place for name, place in stage.options.items() if name != "out"}:
            missing.add(stage.options["out"])
        else:
            stages.append(stage)
    return stages


def measure_stages(stages: Sequence[Stage], size: int, folder: Path, questions: int) -> list[Cost]:
    """Return what each stage takes at this size; leaves the models of the first size in `folder`."""
    from eadpr.runtime import files

    configs = configs_of(size)
    collection = folder / str(size)
    costs = []
    for stage in stages:
        for model in (ANNOTATOR, BASE):
            if model.options["out"] in stage.options.values() and not (collection / model.options["out"]).exists():
                run(model, collection, configs)
        cost = run(stage, collection, configs)
        costs.append(Cost(stage.name, size, **cost))
        typer.echo(f"{size:,} passages: {stage.name} {cost['seconds']:,.1f} s", err=True)
        if stage.name == "prepare":
            write_few(collection, questions)
    files.discard(collection)
    return costs


def configs_of(size: int) -> dict[str, dict[str, Any]]:
    """Return the configs of params.yaml, for atlas of this size, with an annotator that hardly learns."""
    from eadpr.settings.resolve import configs, load

    values = load(ROOT / "params.yaml")
    values["collection"] = "atlas"
    values["atlas"]["passages"] = size
    values["annotator"]["build"] |= {"continuation_steps": 1, "answering_steps": 1}
    by_name = configs(values)  # training questions are ranked too
    return by_name | {"retrieve.json": by_name["dpr/retrieve.json"] | {"sets": by_name["bm25.json"]["sets"]}}


def write_few(collection: Path, questions: int) -> None:
    """The records with the first questions of every set alone."""
    from eadpr.storage import tables
    from eadpr.storage.records import SetMember

    counts: dict[tuple[str, str], int] = {}
    members = []
    for member in tables.rows(collection / "records" / "question_sets.parquet", SetMember):
        key = (member.question_set, member.split)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= questions:
            members.append(member)
    tables.write(collection / FEW / "question_sets.parquet", SetMember, members)
    for name in ("passages.parquet", "contexts.parquet", "questions.parquet"):
        os.link(collection / "records" / name, collection / FEW / name)


def run(stage: Stage, collection: Path, configs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Processor seconds and bytes that the stage's process took."""
    from eadpr.runtime.files import write_json

    config, used = collection / f"{stage.name}.json", collection / f"{stage.name}.used"
    write_json(config, configs[stage.config])
    options = {"config": config} | {name: collection / place for name, place in stage.options.items()}
    words = [str(word) for name, path in options.items() for word in (f"--{name}", path)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "EADPR_CACHE": str(collection / "cache"),
    }
    command = [sys.executable, "-S", USAGE, used, sys.executable, "-m", f"stages.{stage.name}", *words]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return json.loads(used.read_text(encoding="utf-8"))


class Growth(NamedTuple):
    """Of one stage. `per_passage`: microseconds at each size above the smallest; `resident`: bytes at these sizes."""

    sizes: list[int]
    per_passage: list[float]
    resident: list[int]
    seconds_of_wikipedia: float
    resident_of_wikipedia: float


def growth(costs: list[Cost], stage: str) -> Growth:
    """Growth over three or more sizes, ascending; Wikipedia's passages cost what those between the last two did."""
    first, *larger = [cost for cost in costs if cost.stage == stage]
    per_passage = [1e6 * (cost.seconds - first.seconds) / (cost.passages - first.passages) for cost in larger]
    previous, last = larger[-2:]
    more = (WIKIPEDIA - last.passages) / (last.passages - previous.passages)
    return Growth(
        [cost.passages for cost in larger],
        per_passage,
        [cost.resident for cost in larger],
        last.seconds + more * (last.seconds - previous.seconds),
        last.resident + more * (last.resident - previous.resident),
    )


def table(costs: list[Cost]) -> str:
    names = list(dict.fromkeys(cost.stage for cost in costs))
    sizes = growth(costs, names[0]).sizes
    titles = [
        "stage",
        *(f"µs per passage at {size:,}" for size in sizes),
        f"last over first (≤ {MOST_TIME})",
        *(f"MiB at {size:,}" for size in sizes),
        f"{WIKIPEDIA:,}: hours",
        "GiB",
    ]
    lines = [f"| {' | '.join(titles)} |", f"|---|{'--:|' * (len(titles) - 1)}"]
    for name in names:
        estimate = growth(costs, name)
        cells = [
            name,
            *(f"{micro:,.0f}" for micro in estimate.per_passage),
            f"{estimate.per_passage[-1] / estimate.per_passage[0]:.2f}",
            *(f"{size / MEBI:,.0f}" for size in estimate.resident),
            f"{estimate.seconds_of_wikipedia / 3600:,.1f}",
            f"{estimate.resident_of_wikipedia / MEBI / 1024:,.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def document(costs: list[Cost], about: str, *, name: str) -> str:
    """The page; what the columns mean stands in scale.md alone."""
    start = min(cost.passages for cost in costs)
    meaning = f"""\
What `make bench-scale` measured: each stage as its own process, once at every size of atlas. Time is the processor's,
of all threads, and per passage what a run took more than the one of {start:,} passages, by the passages more, so that
starting up does not count. Memory is the peak of the process, with the JVM and with pages of mapped files, which the
kernel takes back when it needs them.

`bm25` and `retrieve` rank for the same number of questions at every size. `positives` to `examples` meet all questions,
which grow with the passages, and hold a few kB of each question. `evidence` asks an annotator about each span of each
positive. The last two columns go on, on paper, to Wikipedia's {WIKIPEDIA:,} passages with as many questions a passage,
some 15 million; Natural Questions asks 0.1 million."""
    if name != "scale":
        meaning = "What the columns mean stands in [cost as work grows](scale.md)."
    sizes = f"{max(cost.passages for cost in costs):,}"
    return f"""# Cost as work grows, to {sizes} passages

{meaning}

{about}

{table(costs)}"""


if __name__ == "__main__":
    typer.run(main)
