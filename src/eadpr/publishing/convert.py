"""The command `eadpr convert`."""

from __future__ import annotations

from pathlib import Path

import typer


def convert_checkpoint(
    checkpoints: list[Path] = typer.Argument(..., help="DPR's .cp, the files of both encoders, or a model folder."),
    out: Path = typer.Option(..., help="New folder: of two encoders or a model."),
    architecture: str = typer.Option(
        "bert-base-uncased", help="Model whose config and tokenizer the encoders have: name or folder."
    ),
) -> None:
    """Turn a published DPR checkpoint into a model folder: eadpr convert hf_bert_base.cp --out models/dpr-nq.

    A model folder with pickled weights becomes one with safetensors. Nothing but tensors and plain values is loaded.
    """
    from eadpr.training.convert import convert, convert_folder

    if len(checkpoints) == 1 and checkpoints[0].is_dir():
        parameters = convert_folder(checkpoints[0], out)
        typer.echo(f"convert: {parameters:,} parameters in {out}")
        return
    parameters = convert(checkpoints, out, architecture=architecture)
    typer.echo(f"convert: two encoders of together {parameters:,} parameters in {out}")
    typer.echo(f"next: dvc exp run -S base.model={out} -S encoder.shared=false")
