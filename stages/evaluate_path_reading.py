"""Measure the answers of a reader of paths and their supporting sentences."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Section sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions, question sets and origins."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    reading: Path = typer.Option(..., help="Folder of predictions.parquet."),
    outcomes: Path = typer.Option(..., help="Parquet file to write."),
    metrics: Path = typer.Option(..., help="JSON file to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation.path_reading import evaluate_path_reading

    (sets,) = configs.read(config, sets=Sets)
    counts = evaluate_path_reading(
        records=records, positives=positives, reading=reading, outcomes=outcomes, metrics_file=metrics, sets=sets
    )
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    typer.echo(f"evaluate_path_reading: {metrics.parent.name} on {metrics.stem}: {found}")


if __name__ == "__main__":
    run(main)
