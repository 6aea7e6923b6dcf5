"""Let a reader answer the evaluated questions from the passages that a ranking gives them."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections read, sets and machine."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    ranking: Path = typer.Option(..., help="Folder of evaluate.parquet."),
    reader: Path = typer.Option(..., help="Folder of the trained reader."),
    out: Path = typer.Option(..., help="Folder to write predictions.parquet and predictions.json to."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.machine import Machine, settle
    from eadpr.reading.config import Read

    settings, sets, machine = configs.read(config, read=Read, sets=Sets, machine=Machine)
    settle(machine)
    from eadpr.reading.read import read

    count = read(records, ranking, reader, out, settings=settings, sets=sets, hardware=machine)
    typer.echo(f"read: {reader.name} answered {count:,} questions from {ranking.name}")


if __name__ == "__main__":
    run(main)
