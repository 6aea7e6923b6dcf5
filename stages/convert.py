"""Turn a published DPR checkpoint into a model folder: python -m stages.convert hf_bert_base.cp --out models/dpr-nq.
Its reader too (--reader); and a model folder with pickled weights into one with safetensors: FOLDER --out NEW.

A command for users, not a DVC stage. Nothing that the file may hold besides tensors and plain values is loaded.
"""

from __future__ import annotations

from pathlib import Path

import typer

from eadpr.commands import command


@command
def main(
    checkpoints: list[Path] = typer.Argument(..., help="DPR's .cp, the files of both encoders, or a model folder."),
    out: Path = typer.Option(..., help="New folder of question_encoder, passage_encoder and encoder.json."),
    architecture: str = typer.Option(
        "bert-base-uncased", help="Model whose config and tokenizer it has: name or folder."
    ),
    reader: bool = typer.Option(False, "--reader", help="The file is DPR's reader, not its encoders."),
) -> None:
    from eadpr.reading.published import convert_reader
    from eadpr.training.convert import convert, convert_folder

    if len(checkpoints) == 1 and (reader or checkpoints[0].is_dir()):
        made = (convert_reader if reader else convert_folder)(checkpoints[0], out, architecture=architecture)
        typer.echo(f"convert: {made:,} parameters in {out}")
        return
    if reader:
        raise typer.BadParameter("a reader is one file", param_hint="CHECKPOINTS")
    parameters = convert(checkpoints, out, architecture=architecture)
    typer.echo(f"convert: two encoders of together {parameters:,} parameters in {out}")
    typer.echo(
        f"next: dvc exp run -S base.model={out} -S encoder.pooling=cls -S encoder.question_tokens=256"
        " -S encoder.passage_tokens=256 -S train.learning_rate=2e-5"
    )
