"""Take the given positives of the evaluated questions for a ranking."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Section sets."),
    records: Path = typer.Option(..., help="Folder of questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    out: Path = typer.Option(..., help="Folder to write evaluate.parquet to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.reading.gold import write_gold

    (sets,) = read(config, sets=Sets)
    count = write_gold(records, positives, out, sets=sets)
    typer.echo(f"gold_ranking: positives of {count:,} questions")


if __name__ == "__main__":
    run(main)
