"""Join positives, negatives and distractors to an arm's training examples."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Section examples."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet and folds.parquet."),
    negatives: Path = typer.Option(..., help="Folder of negatives.parquet."),
    distractors: Path = typer.Option(..., help="Folder of distractors.parquet."),
    out: Path = typer.Option(..., help="Folder of examples.parquet and distractors.parquet."),
) -> None:
    from eadpr.config import read
    from eadpr.supervision.examples import Examples, make_examples

    (examples,) = read(config, examples=Examples)
    count = make_examples(positives, negatives, distractors, out, examples=examples)
    typer.echo(f"examples: {count:,} for training")


if __name__ == "__main__":
    run(main)
