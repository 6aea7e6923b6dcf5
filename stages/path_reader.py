"""Train a reader of paths, which answers multi-hop questions and names the sentences that support the answer."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections path_reader, path_reader_files and machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet and questions.parquet."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet and folds.parquet."),
    paths: Path = typer.Option(..., help="Folder of train.parquet, the paths to learn from."),
    init: Path = typer.Option(..., help="Folder of encoders to start from."),
    out: Path = typer.Option(..., help="Folder of the trained reader."),
    log: Path = typer.Option(..., help="Folder of the log in DVCLive's layout."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.model_folders import ModelFiles
    from eadpr.reading_multihop.config import PathLearning

    settings, given, machine = read(config, path_reader=PathLearning, path_reader_files=ModelFiles, machine=Machine)
    settle(machine, spinning=False)
    from eadpr.reading_multihop.train import Inputs, train_path_reader

    inputs = Inputs(records=records, positives=positives, paths=paths, init=init)
    steps = train_path_reader(inputs, out, log, settings=settings, model_files=given, hardware=machine)
    typer.echo(f"path_reader: {steps:,} steps")


if __name__ == "__main__":
    run(main)
