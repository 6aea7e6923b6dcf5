"""Find the positive passages of every question and part the questions into train and validation."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections positives and sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions, question sets and contexts."),
    ranking: Path = typer.Option(..., help="Folder of the BM25 rankings train.parquet and evaluate.parquet."),
    out: Path = typer.Option(..., help="Folder to write positives.parquet, folds.parquet and report.json to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.supervision.positives import Positives, find_positives

    positives, sets = read(config, positives=Positives, sets=Sets)
    count = find_positives(records, ranking, out, positives=positives, sets=sets)
    typer.echo(f"positives: {count:,} positive passages")


if __name__ == "__main__":
    run(main)
