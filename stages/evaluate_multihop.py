"""Measure paths and the ranking that they make."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections evaluate and sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    paths: Path = typer.Option(..., help="Folder of evaluate.parquet, paths."),
    ranking: Path = typer.Option(..., help="Folder of evaluate.parquet, the passages of the paths."),
    compared: Path = typer.Option(..., help="Outcomes of a ranking in one hop."),
    outcomes: Path = typer.Option(..., help="Parquet file to write."),
    metrics: Path = typer.Option(..., help="JSON file to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation import evaluate_paths
    from eadpr.evaluation.config import Evaluate

    settings, sets = configs.read(config, evaluate=Evaluate, sets=Sets)
    counts = evaluate_paths.run(
        records=records,
        positives=positives,
        paths=paths,
        ranking=ranking,
        one_hop=compared,
        outcomes=outcomes,
        metrics_file=metrics,
        settings=settings,
        sets=sets,
    )
    found = ", ".join(f"{count:,} questions of {name}" for name, count in counts.items())
    typer.echo(f"evaluate_multihop: {metrics.stem}: {found}")


if __name__ == "__main__":
    run(main)
