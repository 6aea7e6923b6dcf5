"""Run a study of studies.yaml and write its table: python -m stages.study NAME."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eadpr.commands import command

if TYPE_CHECKING:
    from eadpr.studies import Study


def _pictures(names: list[str], of: Path, to: Path, study: str) -> str:
    """Lines that show the pictures of a report, which are copied beside the study's table."""
    from eadpr import files

    said = ""
    for name in names:
        copy = to / f"{study}-{name}.svg"
        files.write_text(copy, (of / f"{name}.svg").read_text(encoding="utf-8"))
        said += f"\n![{name}]({copy.name})\n"
    return said


def _grid(study: Study, ran: dict[str, Any], picture: Path) -> str:
    """Tables of the grid over the first question set; the heat map goes to `picture`."""
    from eadpr import files
    from eadpr.evaluation import describe, plots

    collection = ran["collection"]
    question_set = ran["collections"][collection]["sets"]["evaluate"][0]
    metrics = Path("reports") / collection / "metrics"
    found = describe.grid(metrics, question_set, study.grid.cells(ran["active"]), study.grid.metrics)
    files.write_text(picture, plots.heat_maps(found))
    title = f"{study.grid.rows} and {study.grid.columns}"
    return f"\n## {question_set}: {title}\n\n{describe.grid_tables(found)}\n\n![{title}]({picture.name})\n"


def _run(experiment: list[str], params: Path) -> dict[str, Any]:
    """The parameters that the experiment ran with."""
    from eadpr import files
    from eadpr.params import load

    before = params.read_text(encoding="utf-8")
    try:
        code = subprocess.run(experiment, check=False).returncode
        ran = load(params)
    finally:  # dvc leaves its overrides there, where the next study would start from them
        files.write_text(params, before)
    if code:
        raise typer.Exit(code)  # dvc has said why
    return ran


@command
def main(
    name: str = typer.Argument(..., help="A study of studies.yaml."),
    collection: str = typer.Option(None, help="The collection; by default the study's own, else that of params.yaml."),
    seeds: list[int] = typer.Option([], "--seed", min=0, help="A seed to train with, in place of the study's."),
    set_: list[str] = typer.Option([], "--set", "-S", help="One more override, as for dvc exp run."),
    show: bool = typer.Option(False, "--show", help="Only print the command."),
    studies: Path = typer.Option(Path("studies.yaml"), help="The studies."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
    out: Path = typer.Option(Path("docs/studies"), help="Folder of the tables: <collection>/<study>.md."),
) -> None:
    from eadpr import files
    from eadpr.evaluation import describe
    from eadpr.params import configs, load
    from eadpr.studies import expanded, overrides, read_study

    values = load(params)
    study = read_study(studies, name)
    if collection is not None:
        study = study.model_copy(update={"settings": study.settings | {"collection": collection}})
    if seeds:
        study = study.model_copy(update={"seeds": seeds})
    wanted = expanded(study, values)
    found = configs(wanted)
    if study.grid:
        from eadpr.evaluation.config import Evaluate

        describe.check(study.grid.metrics, Evaluate(**found["evaluate.json"]["evaluate"]))
    changes = [*overrides(values, wanted), *set_]
    command = ["dvc", "exp", "run", *(word for change in changes for word in ("-S", change))]
    typer.echo(shlex.join(command))
    if show:
        return
    ran = _run(command, params)
    chosen = ran["collection"]
    table = (Path("reports") / chosen / "table.md").read_text(encoding="utf-8")
    pictures = [*study.pictures, *(f"robustness-{generator}" for generator in ran["robustness"]["generators"])]
    table += _pictures(pictures, Path("reports") / chosen, out / chosen, name)
    if study.grid:
        table += _grid(study, ran, out / chosen / f"{name}.svg")
    table += f"\n## What each was trained with\n\n{describe.trained_with(ran['active'], configs(ran))}\n"
    path = out / chosen / f"{name}.md"
    said = "" if collection is None else f" --collection {collection}"
    said += "".join(f" --seed {seed}" for seed in seeds)
    said += "".join(f" -S {shlex.quote(change)}" for change in set_)
    files.write_text(path, f"{study.about}\n\n`python -m stages.study {name}{said}`\n\n{table}")
    typer.echo(f"study: {path}")
