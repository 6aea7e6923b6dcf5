"""Publish an arm as a folder that other libraries load: python -m stages.publish eadpr --to FOLDER.

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from eadpr.commands import command


class OnDemand(StrEnum):
    vectors = "vectors"
    onnx = "onnx"
    dpr = "dpr"


@command
def main(
    arm: str = typer.Argument(..., help="An active arm that is trained and measured."),
    to: Path = typer.Option(..., help="New folder, written whole or not at all."),
    parts: list[OnDemand] = typer.Option([], "--with", help="What else to write; repeat for several."),
    license: str = typer.Option(None, help="The folder's licence as the Hub names it, e.g. cc-by-sa-4.0."),
    push: str = typer.Option(None, help="Upload it to the Hub under this name, USER/MODEL."),
    public: bool = typer.Option(False, "--public", help="Whoever likes may see what is uploaded."),
    collection: str = typer.Option(None, help="By default that of params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> str:
    from eadpr import provenance
    from eadpr.params_yaml import load
    from eadpr.publishing import card, folder, hub

    values = load(params)
    made = Path("data") / (collection or values["collection"])
    about = card.about(values, params, made, arm, name=push or to.name, license=license, commit=provenance.commit())
    found = folder.publish(arm, made, to, parts=parts, card=lambda one: card.text(about, one, made))
    said = f"publish: {arm} of {made.name} in {to}"
    if push:
        said += f"\nuploaded: {hub.push(to, push, public=public)}"
    return "\n".join([said, *(f"not there: {part}, {why}" for part, why in found.refused.items())])
