"""Train a reader, which finds answers in ranked passages."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections reader, reader_files and machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet and questions.parquet."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet and folds.parquet."),
    ranking: Path = typer.Option(..., help="Folder of train.parquet, the ranking to learn from."),
    init: Path = typer.Option(..., help="Folder of encoders, or of the annotator, to start from."),
    out: Path = typer.Option(..., help="Folder of the trained reader."),
    log: Path = typer.Option(..., help="Folder of the log in DVCLive's layout."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.model_folders import ModelFiles
    from eadpr.reading.config import Reader

    settings, given, machine = read(config, reader=Reader, reader_files=ModelFiles, machine=Machine)
    settle(machine, spinning=False)
    from eadpr.reading.train import Inputs, train_reader

    inputs = Inputs(records=records, positives=positives, ranking=ranking, init=init)
    steps = train_reader(inputs, out, log, settings=settings, given=given, hardware=machine)
    typer.echo(f"reader: {steps:,} steps")


if __name__ == "__main__":
    run(main)
