"""Make one ranking of two."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections fuse, retrieve and sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives and folds."),
    first: Path = typer.Option(..., help="Folder of train.parquet and evaluate.parquet."),
    second: Path = typer.Option(..., help="Another one."),
    out: Path = typer.Option(..., help="Folder to write train.parquet, evaluate.parquet and fusion.json to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.search.config import Fuse, Retrieve
    from eadpr.search.fusion import fuse

    settings, retrieve, sets = read(config, fuse=Fuse, retrieve=Retrieve, sets=Sets)
    chosen = fuse(records, positives, first, second, out, settings=settings, sets=sets, depth=retrieve.depth)
    typer.echo(f"fuse: {settings.by}" + (f", weight {chosen['weight']:g}" if chosen else ""))


if __name__ == "__main__":
    run(main)
