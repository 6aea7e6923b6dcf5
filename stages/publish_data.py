"""Publish what an arm was trained on as a folder of `datasets`: python -m stages.publish_data eadpr --to FOLDER.

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

from pathlib import Path

import typer

from eadpr.commands import command


@command
def main(
    arm: str = typer.Argument(..., help="An active arm whose examples are made."),
    to: Path = typer.Option(..., help="New folder, written whole or not at all."),
    join: str = typer.Option("{title} {text}", help="One text of a passage."),
    license: str = typer.Option(None, help="The folder's licence as the Hub names it, e.g. cc-by-sa-4.0."),
    push: str = typer.Option(None, help="Upload it to the Hub under this name, USER/DATASET."),
    public: bool = typer.Option(False, "--public", help="Whoever likes may see what is uploaded."),
    collection: str = typer.Option(None, help="By default that of params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> str:
    from eadpr import provenance
    from eadpr.params_yaml import load
    from eadpr.publishing import card, data, hub

    values = load(params)
    made = Path("data") / (collection or values["collection"])
    about = card.about(values, params, made, arm, name=push or to.name, license=license, commit=provenance.commit())
    count = data.publish_data(arm, made, to, join=join, about=about)
    said = f"publish_data: {count:,} examples of {arm} in {to}"
    return f"{said}\nuploaded: {hub.push(to, push, public=public, kind='dataset')}" if push else said
