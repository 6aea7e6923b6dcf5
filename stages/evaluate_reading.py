"""Measure a reader's answers."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections read and sets."),
    records: Path = typer.Option(..., help="Folder of questions and question sets."),
    reading: Path = typer.Option(..., help="Folder of predictions.parquet."),
    outcomes: Path = typer.Option(..., help="Parquet file to write."),
    metrics: Path = typer.Option(..., help="JSON file to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation.reading import evaluate_reading
    from eadpr.reading.config import Read

    settings, sets = configs.read(config, read=Read, sets=Sets)
    counts = evaluate_reading(
        records=records, reading=reading, outcomes=outcomes, metrics_file=metrics, settings=settings, sets=sets
    )
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    typer.echo(f"evaluate_reading: {metrics.parent.name} on {metrics.stem}: {found}")


if __name__ == "__main__":
    run(main)
