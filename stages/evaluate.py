"""Measure a ranking, and where pair scores are given an arm's answer awareness."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections evaluate and sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    ranking: Path = typer.Option(..., help="Folder of evaluate.parquet."),
    pairs: Path | None = typer.Option(None, help="Pair scores; none for BM25."),
    outcomes: Path = typer.Option(..., help="Parquet file to write."),
    metrics: Path = typer.Option(..., help="JSON file to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation import evaluate
    from eadpr.evaluation.config import Evaluate

    settings, sets = configs.read(config, evaluate=Evaluate, sets=Sets)
    counts = evaluate.run(
        records=records,
        positives=positives,
        ranking=ranking,
        pairs=pairs,
        outcomes=outcomes,
        metrics_file=metrics,
        settings=settings,
        sets=sets,
    )
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    typer.echo(f"evaluate: {metrics.stem}: {found}")


if __name__ == "__main__":
    run(main)
