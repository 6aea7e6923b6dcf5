"""The commands `eadpr publish` and `publish-data`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

TO = typer.Option(..., help="New folder, written whole or not at all.")
LICENSE = typer.Option(None, help="The folder's licence as the Hub names it, e.g. cc-by-sa-4.0.")
PUSH = typer.Option(None, help="Upload it to the Hub as USER/NAME and replace all files there.")
PUBLIC = typer.Option(False, "--public", help="Make the uploaded repository public.")
COLLECTION = typer.Option(None, help="By default that of params.yaml.")
PARAMS = typer.Option(Path("params.yaml"), help="The parameter file.")


class OnDemand(StrEnum):
    vectors = "vectors"
    onnx = "onnx"
    dpr = "dpr"


def publish(
    arm: str = typer.Argument(..., help="An active arm that is trained and measured."),
    to: Path = TO,
    parts: list[OnDemand] = typer.Option([], "--with", help="What else to write; repeat for several."),
    license: str = LICENSE,
    push: str = PUSH,
    public: bool = PUBLIC,
    collection: str = COLLECTION,
    params: Path = PARAMS,
) -> str:
    """Publish an arm as a folder that other libraries load: eadpr publish ARM --to FOLDER."""
    from eadpr.publishing import card, folder, hub

    if public and not push:
        raise ValueError("--public is for what is uploaded; give --push USER/NAME too")
    source, about = card.describe_arm(params, collection, arm, name=push or to.name, license=license)
    facts = folder.publish(arm, source, to, parts=parts, card=lambda facts: card.write_card(about, facts, source))
    lines = [f"publish: {arm} of {source.name} in {to}"]
    if push:
        lines.append(f"uploaded: {hub.push(to, push, public=public)}")
    return "\n".join([*lines, *(f"not there: {part}, {reason}" for part, reason in facts.refused.items())])


def publish_data(
    arm: str = typer.Argument(..., help="An active arm whose examples are made."),
    to: Path = TO,
    join: str = typer.Option("{title} {text}", help="One text of a passage."),
    license: str = LICENSE,
    push: str = PUSH,
    public: bool = PUBLIC,
    collection: str = COLLECTION,
    params: Path = PARAMS,
) -> str:
    """Publish an arm's training examples as a folder of `datasets`: eadpr publish-data ARM --to FOLDER."""
    from eadpr.publishing import card, data, hub

    if public and not push:
        raise ValueError("--public is for what is uploaded; give --push USER/NAME too")
    source, about = card.describe_arm(params, collection, arm, name=push or to.name, license=license)
    count = data.publish_data(arm, source, to, join=join, about=about)
    lines = [f"publish_data: {count:,} examples of {arm} in {to}"]
    if push:
        lines.append(f"uploaded: {hub.push(to, push, public=public, kind='dataset')}")
    return "\n".join(lines)
