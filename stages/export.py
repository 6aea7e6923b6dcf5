"""Write a ranking for other tools: TREC run and qrels, DPR's retrieval JSON. A command for users, not a DVC stage."""

from enum import StrEnum
from pathlib import Path

import typer

from eadpr.commands import command


class Format(StrEnum):
    run = "run"
    qrels = "qrels"
    json = "json"


@command
def main(
    ranking: Path = typer.Option(..., help="A ranking, e.g. data/atlas/rankings/eadpr/evaluate.parquet."),
    records: Path = typer.Option(..., help="The collection's records, e.g. data/atlas/records."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet, e.g. data/atlas/positives."),
    out: Path = typer.Option(..., help="Folder to write run.trec, qrels.trec and retrieval.json to."),
    tag: str = typer.Option(None, help="Name of the run in its last column.  [default: the ranking's folder]"),
    formats: list[Format] = typer.Option(list(Format), "--format", help="What to write; repeat for several."),
) -> None:
    from eadpr.search import exports

    run_file, qrels_file, json_file = out / "run.trec", out / "qrels.trec", out / "retrieval.json"
    if Format.run in formats:
        count = exports.write_trec_run(ranking, run_file, tag=tag or ranking.absolute().parent.name)
        typer.echo(f"export: {count:,} lines in {run_file}")
    if Format.qrels in formats:
        count = exports.write_trec_qrels(positives / "positives.parquet", ranking, qrels_file)
        typer.echo(f"export: {count:,} lines in {qrels_file}")
    if Format.json in formats:
        count = exports.write_retrieval_json(ranking, records, json_file)
        typer.echo(f"export: {count:,} questions in {json_file}")
