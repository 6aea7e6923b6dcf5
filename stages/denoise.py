"""Keep of a ranking what a reader takes for negatives."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: section denoise."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    ranking: Path = typer.Option(..., help="Folder of the ranking."),
    scores: Path = typer.Option(..., help="A reader's scores of the passages it ranks for the training questions."),
    out: Path = typer.Option(..., help="Folder to write train.parquet and report.json to."),
) -> None:
    from eadpr.config import read
    from eadpr.supervision.denoise import Denoise, denoise

    (settings,) = read(config, denoise=Denoise)
    count = denoise(positives, ranking, scores, out, settings=settings)
    typer.echo(f"denoise: {count:,} passages of {ranking.name} stay")


if __name__ == "__main__":
    run(main)
