"""Rank the passages for the questions trained on and evaluated on, by an arm's encoders."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections retrieve, sets and machine."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    model: Path = typer.Option(..., help="Folder of question_encoder and passage_encoder."),
    vectors: Path = typer.Option(..., help="Folder of the passages' vectors, made with the same model."),
    out: Path = typer.Option(..., help="Folder to write train.parquet and evaluate.parquet to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.machine import Machine, settle
    from eadpr.search.config import Retrieve

    settings, sets, machine = read(config, retrieve=Retrieve, sets=Sets, machine=Machine)
    settle(machine)
    from eadpr.search.retrieve import retrieve

    count = retrieve(records, model, vectors, out, settings=settings, sets=sets, hardware=machine)
    typer.echo(f"retrieve: ranked passages for {count:,} questions")


if __name__ == "__main__":
    run(main)
