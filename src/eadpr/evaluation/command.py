"""The command `eadpr export`."""

from enum import StrEnum
from pathlib import Path

import typer

Format = StrEnum("Format", {"run": "run", "qrels_ids": "qrels-ids", "qrels_answers": "qrels-answers", "json": "json"})


def main(
    ranking: Path = typer.Option(..., help="A ranking, e.g. data/atlas/rankings/eadpr/evaluate.parquet."),
    records: Path = typer.Option(..., help="The collection's records, e.g. data/atlas/records."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet, e.g. data/atlas/positives."),
    out: Path = typer.Option(..., help="Folder to write run.trec, qrels-*.trec and retrieval.json to."),
    tag: str = typer.Option(None, help="Name of the run in its last column.  [default: the ranking's folder]"),
    question_sets: list[str] = typer.Option(
        [], "--set", help="Sets of the ranking to write, their unranked questions too; by default all that is ranked."
    ),
    formats: list[Format] = typer.Option(list(Format), "--format", help="What to write; repeat for several."),
) -> None:
    """Write a ranking for other tools: TREC run, qrels by id and by answer, DPR's retrieval JSON."""
    from eadpr.evaluation.exports import export

    paths = ranking, records, positives / "positives.parquet", out
    counts = export(*paths, tag=tag or ranking.absolute().parent.name, sets=question_sets, formats=formats)
    for path, count in counts.items():
        typer.echo(f"export: {count:,} {'questions' if path.suffix == '.json' else 'lines'} in {path}")
