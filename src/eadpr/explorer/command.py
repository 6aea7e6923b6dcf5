"""The command `eadpr explore`."""

from pathlib import Path

import typer


def main(
    arm: list[str] = typer.Option([], help="A ranking by name; by default all of the report."),
    question_set: list[str] = typer.Option([], "--set", help="set/split; by default all of sets.evaluate."),
    depth: int = typer.Option(20, min=1, help="Passages shown of each ranking."),
    collection: str = typer.Option(None, help="By default the only one in data/ that has a report."),
    out: Path = typer.Option(None, help="HTML file; by default explore-<collection>.html."),
) -> str:
    """Show the results of `dvc repro` as one HTML file, question by question: eadpr explore --arm eadpr --arm dpr."""
    from eadpr.explorer import explore

    name = explore.find_collection(Path("data"), collection)
    inputs, settings, sets = explore.find_outputs(Path("data") / name, Path("reports") / name)
    page, chosen = out or Path(f"explore-{name}.html"), {"arms": arm, "question_sets": question_set, "depth": depth}
    return explore.run(inputs, page, name, settings, sets, **chosen)
