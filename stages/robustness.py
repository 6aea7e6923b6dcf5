"""Measure an arm's ranking as near-duplicates join the corpus."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections robustness, evaluate, encode, sets and machine."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    ranking: Path = typer.Option(..., help="Folder of the arm's evaluate.parquet."),
    model: Path = typer.Option(..., help="Folder of the arm's encoders."),
    duplicates: Path = typer.Option(..., help="Folder of near_duplicates.parquet."),
    out: Path = typer.Option(..., help="Folder to write a table of outcomes per count to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.evaluation.config import Evaluate, Robustness
    from eadpr.machine import Machine, settle
    from eadpr.search.config import Encode

    settings = read(config, robustness=Robustness, evaluate=Evaluate, encode=Encode, sets=Sets, machine=Machine)
    settle(settings[-1])
    from eadpr.evaluation import robustness

    inputs = robustness.Inputs(
        records=records, positives=positives, ranking=ranking, model=model, near_duplicates=duplicates
    )
    count = robustness.run(inputs, out, robustness.Settings(*settings))
    typer.echo(f"robustness: {out.name} against {count:,} near-duplicates by {duplicates.name}")


if __name__ == "__main__":
    run(main)
