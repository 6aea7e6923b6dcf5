"""Show what was measured as one HTML file, question by question: python -m stages.explore --arm eadpr --arm dpr.

DVC gives it a config file and paths. Without --config it is a command for users, of what `dvc repro` made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from eadpr.settings.command import command, stage


def by_hand(
    arm: list[str] = typer.Option([], help="A ranking by name: eadpr, eadpr+removed-5; by default all of the report."),
    question_set: list[str] = typer.Option([], "--set", help="set/split; by default all of sets.evaluate."),
    depth: int = typer.Option(20, min=1, help="Passages shown of each ranking."),
    collection: str = typer.Option(None, help="By default the only one in data/ that was measured."),
    out: Path = typer.Option(None, help="HTML file; by default explore-<collection>.html."),
) -> str:
    from eadpr.explorer import explore

    name = explore.find_collection(Path("data"), collection)
    inputs, settings, sets, counts = explore.find_outputs(Path("data") / name, Path("reports") / name)
    page, chosen = out or Path(f"explore-{name}.html"), {"arms": arm, "question_sets": question_set, "depth": depth}
    return explore.run(inputs, page, name, settings, sets, counts=counts, **chosen)


if "--config" not in sys.argv:
    command(by_hand)


@stage()
def main(
    report, sets, explore,
    *, records, positives, evidence, distractors, negatives, training, pairs, rankings, outcomes, measured, out,
):  # fmt: skip
    from eadpr.explorer import explore as explorer
    from eadpr.explorer.rankings import ExploreInputs

    left, counts = explorer.remove_inactive(rankings, explore), explore.near_duplicates
    inputs = ExploreInputs(
        records, positives, evidence, distractors, negatives, training, pairs, rankings, outcomes, measured
    )
    why = "a ranking of what is not active (dvc checkout brings it back with its arm)"
    said = [f"explore: deleted {path}, {why}" for path in left]
    return "\n".join([*said, explorer.run(inputs, out, measured.name, report, sets, counts=counts)])
