"""Publish what an arm was trained on as a folder of `datasets`: python -m stages.publish_data eadpr --to FOLDER.

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

from pathlib import Path

import typer

from eadpr.settings.command import command
from stages.publish import COLLECTION, LICENSE, PARAMS, PUBLIC, PUSH, TO


@command
def main(
    arm: str = typer.Argument(..., help="An active arm whose examples are made."),
    to: Path = TO,
    join: str = typer.Option("{title} {text}", help="One text of a passage."),
    license: str = LICENSE,
    push: str = PUSH,
    public: bool = PUBLIC,
    collection: str = COLLECTION,
    params: Path = PARAMS,
) -> str:
    from eadpr.publishing import card, data, hub

    if public and not push:
        raise ValueError("--public is for what is uploaded; give --push USER/NAME too")
    made, about = card.describe_arm(params, collection, arm, name=push or to.name, license=license)
    count = data.publish_data(arm, made, to, join=join, about=about)
    said = f"publish_data: {count:,} examples of {arm} in {to}"
    return f"{said}\nuploaded: {hub.push(to, push, public=public, kind='dataset')}" if push else said
