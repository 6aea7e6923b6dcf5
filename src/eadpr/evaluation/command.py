"""The command `eadpr export`."""

from pathlib import Path

import typer

from eadpr.runtime.files import read_json


def complete_sets(begun: str) -> list[str]:
    reports = map(read_json, Path().glob("data/*/records/report.json"))
    return sorted({name for report in reports for name in report["sets"] if name.startswith(begun)})


def main(
    ranking: Path = typer.Option(..., help="A ranking, e.g. data/atlas/rankings/eadpr/evaluate.parquet."),
    records: Path = typer.Option(..., help="The collection's records, e.g. data/atlas/records."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet, e.g. data/atlas/positives."),
    out: Path = typer.Option(..., help="Folder to write run.trec and qrels-*.trec to."),
    question_sets: list[str] = typer.Option(
        [], "--set", autocompletion=complete_sets, help="Sets to write, unranked questions too; by default all ranked."
    ),
) -> None:
    """Write a ranking for other tools: TREC run, qrels by id and by answer."""
    from eadpr.evaluation.exports import export

    for path, count in export(ranking, records, positives / "positives.parquet", out, sets=question_sets).items():
        typer.echo(f"export: {count:,} lines in {path}")
