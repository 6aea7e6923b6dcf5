"""Cost as questions grow: every stage that meets all questions, run as its command on made-up tables of several sizes.

`python -m benchmarks.scale_questions` prints a table, for docs/scale-questions.md. Each question has three
positives and a ranking of forty passages; there are half as many passages as questions, at most two million. Evidence
is found by rule, as no model is measured here; with `--joins`, distractors are made up too.
"""

import datetime
import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import typer

from benchmarks import made_up, scale
from benchmarks.scale import Cost, Stage

SIZES = (100_000, 1_000_000)
PASSAGES = 2_000_000  # at most
MOST_GROWTH = 1.2  # of memory, from one size to the next
JOINS = ("positives", "negatives", "examples")
JOINED = {"records": "records", "positives": "positives"}
STAGES = (
    Stage("positives", "positives.json", {"records": "records", "ranking": "bm25", "out": "positives"}),
    Stage("annotator", "annotator.json", {**JOINED, "out": "annotator"}),
    Stage("evidence", "evidence.json", {**JOINED, "annotator": "annotator", "out": "evidence.parquet"}),
    Stage(
        "distractors",
        "distractors.json",
        {"sources": "", "raw": "", **JOINED, "evidence": "evidence.parquet", "ranking": "bm25", "out": "distractors"},
    ),
    Stage("negatives", "dpr/negatives.json", {**JOINED, "ranking": "bm25", "out": "negatives"}),
    Stage(
        "examples",
        "eadpr/examples.json",
        {"positives": "positives", "negatives": "negatives", "distractors": "distractors", "out": "examples"},
    ),
    Stage("evaluate", "evaluate.json", {**JOINED, "ranking": "evaluated", "out": "outcomes/bm25.parquet"}),
)


def main(
    questions: list[int] = typer.Option(list(SIZES), min=1, help="Numbers of questions, ascending."),
    joins: bool = typer.Option(False, help=f"Only {', '.join(JOINS)}."),
    folder: Path = typer.Option(None, help="Where to put the tables; a temporary folder by default."),
) -> None:
    from benchmarks.__main__ import machine

    if questions != sorted(set(questions)):
        raise typer.BadParameter(f"numbers of questions must ascend, found {questions}")
    stages = [stage for stage in STAGES if stage.name in JOINS or not joins]
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        for count in questions:
            costs += measured(stages, count, Path(temporary))
    memory = os.environ.get("EADPR_MEMORY", "as the engine sets it")
    about = f"{machine(scale.LIBRARIES)}; {datetime.date.today().isoformat()}; EADPR_MEMORY: {memory}."
    typer.echo(f"{about}\n\n{table(costs)}")


def measured(stages: list[Stage], count: int, folder: Path) -> list[Cost]:
    """What each stage takes for `count` questions; what it writes goes before the next size."""
    from eadpr.runtime import files

    configs, collection = configs_of(), folder / str(count)
    made_up.make(collection, count, min(count // 2, PASSAGES))
    (collection / "evaluated").mkdir()
    os.link(collection / "bm25" / "train.parquet", collection / "evaluated" / "evaluate.parquet")
    if any(stage.name == "distractors" for stage in stages):
        files.discard(collection / "distractors")
    costs = []
    for stage in stages:
        cost = Cost(stage.name, count, **scale.run(stage, collection, configs))
        if stage.name == "annotator":  # only says that there is none
            continue
        costs.append(cost)
        typer.echo(
            f"{count:,} questions: {stage.name} {cost.seconds:,.1f} s, {cost.resident / scale.MEBI:,.0f} MiB", err=True
        )
    files.discard(collection)
    return costs


def configs_of() -> dict[str, dict[str, Any]]:
    """Of params.yaml, for the made-up question set, with evidence by rule."""
    from eadpr.settings.resolve import configs, load
    from eadpr.supervision.config import PLACEBOS

    found = configs(load(scale.ROOT / "params.yaml"))
    for sections in found.values():
        if "sets" in sections:  # of the ones that stages train on and evaluate on, no question may be both
            sections["sets"] = {"train": [made_up.SET], "evaluate": [], "annotator": []}
    found["evaluate.json"]["sets"]["evaluate"] = [made_up.SET]
    found["annotator.json"]["annotator"]["model"] = "none"
    found["evidence.json"]["evidence"] |= {"strategies": ["sentence", *PLACEBOS], "placebo_of": "sentence"}
    found["eadpr/examples.json"]["examples"]["strategy"] = "sentence"
    return found


def table(costs: list[Cost]) -> str:
    """Memory at every size, its growth from each to the next, and time per question."""
    sizes = list(dict.fromkeys(cost.passages for cost in costs))
    titles = [
        "stage",
        *(f"MiB at {size:,}" for size in sizes),
        *(f"{size:,} over {before:,} (≤ {MOST_GROWTH})" for before, size in itertools.pairwise(sizes)),
        *(f"µs per question at {size:,}" for size in sizes),
    ]
    lines = [f"| {' | '.join(titles)} |", f"|---|{'--:|' * (len(titles) - 1)}"]
    for name in dict.fromkeys(cost.stage for cost in costs):
        own = [cost for cost in costs if cost.stage == name]
        cells = [
            name,
            *(f"{cost.resident / scale.MEBI:,.0f}" for cost in own),
            *(f"{cost.resident / before.resident:.2f}" for before, cost in itertools.pairwise(own)),
            *(f"{1e6 * cost.seconds / cost.passages:,.0f}" for cost in own),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
