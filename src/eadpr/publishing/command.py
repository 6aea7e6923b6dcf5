"""The commands `eadpr publish`, `publish-data` and `convert`."""

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


def convert_checkpoint(
    checkpoints: list[Path] = typer.Argument(..., help="DPR's .cp, the files of both encoders, or a model folder."),
    out: Path = typer.Option(..., help="New folder: of two encoders, a reader or a model."),
    architecture: str = typer.Option(
        None, help="Model whose config and tokenizer it has: name or folder. By default that of the published ones."
    ),
    reader: bool = typer.Option(False, "--reader", help="The file is DPR's or MDR's reader, not encoders."),
) -> None:
    """Turn a published DPR checkpoint into a model folder: eadpr convert hf_bert_base.cp --out models/dpr-nq.

    DPR's or MDR's reader too (--reader), and a model folder with pickled weights into one with safetensors. Nothing but
    tensors and plain values is loaded.
    """
    from eadpr.readers.published import convert_reader
    from eadpr.training.convert import convert, convert_folder

    if reader and len(checkpoints) > 1:
        raise typer.BadParameter("a reader is one file", param_hint="CHECKPOINTS")
    if len(checkpoints) == 1 and (reader or checkpoints[0].is_dir()):
        path = checkpoints[0]
        parameters = (convert_reader if reader else convert_folder)(path, out, architecture)
        typer.echo(f"convert: {parameters:,} parameters in {out}")
        return
    parameters = convert(checkpoints, out, architecture=architecture or "bert-base-uncased")
    typer.echo(f"convert: two encoders of together {parameters:,} parameters in {out}")
    typer.echo(
        f"next: dvc exp run -S base.model={out} -S encoder.shared=false -S encoder.pooling=cls"
        " -S encoder.question_tokens=256 -S encoder.passage_tokens=256 -S train.learning_rate=2e-5"
    )
