"""Let readers score the passages that a ranking gives the training questions."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Section machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet and questions.parquet."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet and folds.parquet."),
    ranking: Path = typer.Option(..., help="Folder of train.parquet, the ranking to score."),
    first: Path = typer.Option(..., help="Folder of the reader that scores the questions of half 0."),
    second: Path = typer.Option(..., help="Folder of the one that scores those of half 1."),
    out: Path = typer.Option(..., help="The table of scores."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle

    (machine,) = read(config, machine=Machine)
    settle(machine)
    from eadpr.reading.passage_scores import Inputs, score_passages

    inputs = Inputs(records=records, positives=positives, ranking=ranking, readers=(first, second))
    count = score_passages(inputs, out, hardware=machine)
    typer.echo(f"score_passages: {count:,} passages of {ranking.name}")


if __name__ == "__main__":
    run(main)
