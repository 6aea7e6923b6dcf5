"""The command line of `eadpr study`; it imports what a study needs when it runs one, so that help comes at once."""

import shlex

import typer


def main(
    name: str = typer.Argument("", help="A study of data/studies."),
    collection: str = typer.Option(None, help="Else the study's, or that of params.yaml."),
    seeds: list[int] = typer.Option([], "--seed", min=0, help="A seed to train with, in place of the study's."),
    set_: list[str] = typer.Option([], "--set", "-S", help="One more override, as for dvc exp run."),
    show: bool = typer.Option(False, "--show", help="Print the command of DVC and exit."),
    check: bool = typer.Option(False, "--check", help="Say which pages, of NAME or all, are of this code."),
) -> str | None:
    """Run a study of data/studies and write its page, docs/studies/<collection>/<study>.md."""
    from eadpr.studies import experiment

    if check:
        from eadpr.studies.check import check_pages

        if seeds or set_ or show:
            raise typer.BadParameter("--check goes with NAME and --collection alone")
        raise typer.Exit(check_pages(f"{collection or '*'}/{name or '*'}"))
    study, overrides = experiment.resolve(name, collection, seeds, set_)
    typer.echo(shlex.join(experiment.experiment_command(overrides)))
    words = [name, *(["--collection", collection] if collection else [])]
    words += [word for seed in seeds for word in ("--seed", str(seed))]
    words += [word for override in set_ for word in ("-S", override)]
    return None if show else f"study: {experiment.run_experiment(name, study, overrides, words)}"
