"""The command line of `eadpr study`; it imports what a study needs when it runs one, so that help comes at once."""

import shlex
from pathlib import Path

import typer


def main(
    name: str = typer.Argument(None, help="A study of data/studies."),
    collection: str = typer.Option(None, help="The collection; by default the study's own, else that of params.yaml."),
    seeds: list[int] = typer.Option([], "--seed", min=0, help="A seed to train with, in place of the study's."),
    set_: list[str] = typer.Option([], "--set", "-S", help="One more override, as for dvc exp run."),
    show: bool = typer.Option(False, "--show", help="Print the command of DVC and exit."),
    check: bool = typer.Option(False, "--check", help="List the pages and whether each is up to date, then exit."),
    strict: bool = typer.Option(False, "--strict", help="With --check: end with 1 where any is not up to date."),
    out: Path = typer.Option(Path("docs/studies"), help="Folder of the pages: <collection>/<study>.md."),
) -> str | None:
    """Run a study of data/studies and write its page, or --check all pages."""
    from eadpr.studies import experiment

    if check:
        if name is not None:
            raise ValueError("--check is for all pages; leave out the study's name")
        if not experiment.check_pages(out) and strict:
            raise typer.Exit(1)
        return None
    if name is None:
        raise ValueError(f"name a study of {experiment.STUDIES}, or give --check")
    request = experiment.Request(name, collection, seeds, set_)
    study, overrides = experiment.resolve(request)
    typer.echo(shlex.join(experiment.experiment_command(overrides)))
    return None if show else f"study: {experiment.run_experiment(request, study, overrides, out)}"
