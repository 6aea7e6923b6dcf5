"""Fine-tune an arm's question encoder on the vectors of its passages."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections query_side and machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet and questions.parquet."),
    positives: Path = typer.Option(..., help="Folder of folds.parquet."),
    model: Path = typer.Option(..., help="Folder of question_encoder and passage_encoder."),
    vectors: Path = typer.Option(..., help="Folder of the passages' vectors, made with the same model."),
    out: Path = typer.Option(..., help="Folder of the same passage encoder and the new question encoder."),
    log: Path = typer.Option(..., help="Folder of the log in DVCLive's layout."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.search.config import QuerySide

    settings, machine = read(config, query_side=QuerySide, machine=Machine)
    settle(machine)
    from eadpr.search.query_side import Inputs, fine_tune

    inputs = Inputs(records=records, positives=positives, model=model, vectors=vectors)
    steps = fine_tune(inputs, out, log, settings=settings, hardware=machine)
    typer.echo(f"query_side: {steps:,} steps")


if __name__ == "__main__":
    run(main)
