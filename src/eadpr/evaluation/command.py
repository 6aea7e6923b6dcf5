"""The command `eadpr export`."""

from pathlib import Path

import typer


def main(
    ranking: Path = typer.Option(..., help="A ranking, e.g. data/atlas/rankings/eadpr/evaluate.parquet."),
    records: Path = typer.Option(..., help="The collection's records, e.g. data/atlas/records."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet, e.g. data/atlas/positives."),
    out: Path = typer.Option(..., help="Folder to write run.trec and qrels-*.trec to."),
    question_sets: list[str] = typer.Option([], "--set", help="Sets to write, unranked too; by default all ranked."),
) -> None:
    """Write a ranking for other tools: TREC run, qrels by id and by answer."""
    from eadpr.evaluation.exports import export

    for path, count in export(ranking, records, positives / "positives.parquet", out, sets=question_sets).items():
        typer.echo(f"export: {count:,} lines in {path}")
