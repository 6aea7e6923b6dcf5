"""The command `eadpr publish`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer


class OnDemand(StrEnum):
    vectors = "vectors"
    onnx = "onnx"
    dpr = "dpr"


def publish(
    arm: str = typer.Argument(
        None, help="An active arm that is trained and measured; by default the best by validation."
    ),
    to: Path = typer.Option(..., help="New folder, written whole or not at all."),
    parts: list[OnDemand] = typer.Option([], "--with", help="What else to write; repeat for several."),
    of_data: bool = typer.Option(False, "--data", help="Publish its training examples instead, for `datasets`."),
    join: str = typer.Option(None, help="One text of a passage in --data; by default '{title} {text}'."),
    license: str = typer.Option(None, help="The folder's licence as the Hub names it, e.g. cc-by-sa-4.0."),
    push: str = typer.Option(None, help="Upload it to the Hub as USER/NAME and replace all files there."),
    public: bool = typer.Option(False, "--public", help="Make the uploaded repository public."),
    collection: str = typer.Option(None, help="By default that of params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> str:
    """Publish an arm as a folder that other libraries load: eadpr publish ARM --to FOLDER."""
    from eadpr.library.scorers import JOIN
    from eadpr.publishing import card, data, folder, hub

    if public and not push:
        raise ValueError("--public is for what is uploaded; give --push USER/NAME too")
    if parts and of_data:
        raise ValueError("--with adds to a model, and --data writes none; give one of the two")
    if join and not of_data:
        raise ValueError("--join is for --data; a model takes passages as it was trained, which its card shows")
    source, about = card.describe_arm(params, collection, arm, name=push or to.name, license=license)
    lines, refused = [], {}
    if of_data:
        count = data.publish_data(about.arm, source, to, join=join or JOIN, about=about)
        lines.append(f"publish: {count:,} examples of {about.arm} in {to}")
    else:
        facts = folder.publish(
            about.arm, source, to, parts=parts, card=lambda facts: card.write_card(about, facts, source)
        )
        lines.append(f"publish: {about.arm} of {source.name} in {to}")
        refused = facts.refused
    if push:
        lines.append(f"uploaded: {hub.push(to, push, public=public, kind='dataset' if of_data else 'model')}")
    return "\n".join([*lines, *(f"not there: {part}, {reason}" for part, reason in refused.items())])
