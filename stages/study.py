"""Run a study of studies.yaml and write its table: python -m stages.study NAME."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import typer

from stages import run


def main(
    name: str = typer.Argument(..., help="A study of studies.yaml."),
    collection: str = typer.Option(None, help="The collection; by default the study's own, else that of params.yaml."),
    set_: list[str] = typer.Option([], "--set", "-S", help="One more override, as for dvc exp run."),
    show: bool = typer.Option(False, "--show", help="Only print the command."),
    studies: Path = typer.Option(Path("studies.yaml"), help="The studies."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
    out: Path = typer.Option(Path("docs/studies"), help="Folder of the tables: <collection>/<study>.md."),
) -> None:
    from eadpr import files
    from eadpr.params import configs, load
    from eadpr.studies import expanded, overrides, read_study

    values = load(params)
    study = read_study(studies, name)
    if collection is not None:
        study = study.model_copy(update={"settings": study.settings | {"collection": collection}})
    wanted = expanded(study, values)
    configs(wanted)
    changes = [*overrides(values, wanted), *set_]
    command = ["dvc", "exp", "run", *(word for change in changes for word in ("-S", change))]
    typer.echo(shlex.join(command))
    if show:
        return
    if code := subprocess.run(command, check=False).returncode:
        raise typer.Exit(code)  # dvc has said why
    chosen = load(params)["collection"]
    table = (Path("reports") / chosen / "table.md").read_text(encoding="utf-8")
    path = out / chosen / f"{name}.md"
    said = "" if collection is None else f" --collection {collection}"
    said += "".join(f" -S {shlex.quote(change)}" for change in set_)
    files.write_text(path, f"{study.about}\n\n`python -m stages.study {name}{said}`\n\n{table}")
    typer.echo(f"study: {path}")


if __name__ == "__main__":
    run(main)
