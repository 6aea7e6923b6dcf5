"""Let a reader of paths answer the evaluated questions and name the sentences that support the answers."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections read_paths and machine."),
    records: Path = typer.Option(..., help="Folder of passages, questions, contexts and origins."),
    paths: Path = typer.Option(..., help="Folder of evaluate.parquet, paths."),
    reader: Path = typer.Option(..., help="Folder of the trained reader of paths."),
    out: Path = typer.Option(..., help="Folder to write predictions.parquet and predictions.json to."),
) -> None:
    from eadpr import config as configs
    from eadpr.machine import Machine, settle
    from eadpr.reading_multihop.config import ReadPaths

    settings, machine = configs.read(config, read_paths=ReadPaths, machine=Machine)
    settle(machine)
    from eadpr.reading_multihop.read import read_paths

    count = read_paths(records, paths, reader, out, settings=settings, hardware=machine)
    typer.echo(f"read_paths: {reader.name} answered {count:,} questions from {paths.name}")


if __name__ == "__main__":
    run(main)
