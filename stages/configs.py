"""Validate params.yaml and write each stage the settings and the code it uses, so that DVC reruns only what a change
concerns."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten

import typer

from eadpr.settings.user_command import run


def main(params: Path = typer.Option(Path("params.yaml"), help="The parameter file.")) -> None:
    """Validate params.yaml and write each stage's settings and code."""
    from eadpr.runtime.files import new_folder
    from eadpr.settings.resolve import load, write_configs
    from eadpr.settings.yaml import locked_collection, own_settings
    from eadpr.studies.provenance import edits

    values = load(params)
    with new_folder(Path("data") / values["collection"] / "configs") as folder:
        count = write_configs(values, folder)
    typer.echo(f"configs: {count} files for {values['collection']} ({', '.join(values['active'])})")
    if changes := ", ".join(edits(values["collection"])):
        typer.echo(shorten(f"configs: differs from the commit: {changes}", 240, placeholder=" …"))
    if setting_names := own_settings(values):
        typer.echo(
            f"configs: {values['collection']} has its own {', '.join(setting_names)}; to change them:"
            f" -S ++collections.{values['collection']}.settings.NAME=VALUE"
        )
    if (locked := locked_collection(params.with_name("dvc.lock"))) not in (None, values["collection"]):
        typer.echo(
            f"configs: what was built for {locked} may leave data/, but stays in DVC's cache; to have it back:"
            " `dvc exp apply NAME` if an experiment built it (`dvc exp show` lists them), and if it was committed"
            " git checkout params.yaml dvc.lock && dvc checkout"
        )


if __name__ == "__main__":
    run(main)
