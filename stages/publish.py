"""Publish an arm as a folder that other libraries load: python -m stages.publish eadpr --to FOLDER.

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from eadpr.settings.command import command

# Of `stages.publish_data` too.
TO = typer.Option(..., help="New folder, written whole or not at all.")
LICENSE = typer.Option(None, help="The folder's licence as the Hub names it, e.g. cc-by-sa-4.0.")
PUSH = typer.Option(None, help="Upload it to the Hub as USER/NAME, in the place of what is there.")
PUBLIC = typer.Option(False, "--public", help="Whoever likes may see what is uploaded.")
COLLECTION = typer.Option(None, help="By default that of params.yaml.")
PARAMS = typer.Option(Path("params.yaml"), help="The parameter file.")


class OnDemand(StrEnum):
    vectors = "vectors"
    onnx = "onnx"
    dpr = "dpr"


@command
def main(
    arm: str = typer.Argument(..., help="An active arm that is trained and measured."),
    to: Path = TO,
    parts: list[OnDemand] = typer.Option([], "--with", help="What else to write; repeat for several."),
    license: str = LICENSE,
    push: str = PUSH,
    public: bool = PUBLIC,
    collection: str = COLLECTION,
    params: Path = PARAMS,
) -> str:
    from eadpr.publishing import card, folder, hub

    if public and not push:
        raise ValueError("--public is for what is uploaded; give --push USER/NAME too")
    made, about = card.describe_arm(params, collection, arm, name=push or to.name, license=license)
    found = folder.publish(arm, made, to, parts=parts, card=lambda one: card.write_card(about, one, made))
    said = f"publish: {arm} of {made.name} in {to}"
    if push:
        said += f"\nuploaded: {hub.push(to, push, public=public)}"
    return "\n".join([said, *(f"not there: {part}, {why}" for part, why in found.refused.items())])
