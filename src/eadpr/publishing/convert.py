"""The command `eadpr convert`."""

from __future__ import annotations

from pathlib import Path

import typer


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
    typer.echo(f"next: dvc exp run -S base.model={out} -S encoder.shared=false")
