"""The command `eadpr export`."""

from enum import StrEnum
from pathlib import Path

import typer


class Format(StrEnum):
    run = "run"
    qrels_ids = "qrels-ids"
    qrels_answers = "qrels-answers"
    json = "json"


def main(
    ranking: Path = typer.Option(..., help="A ranking, e.g. data/atlas/rankings/eadpr/evaluate.parquet."),
    records: Path = typer.Option(..., help="The collection's records, e.g. data/atlas/records."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet, e.g. data/atlas/positives."),
    out: Path = typer.Option(..., help="Folder to write run.trec, qrels-*.trec and retrieval.json to."),
    tag: str = typer.Option(None, help="Name of the run in its last column.  [default: the ranking's folder]"),
    question_sets: list[str] = typer.Option(
        [],
        "--set",
        help="Sets of the ranking whose questions qrels hold, the unranked too; by default the ranked ones.",
    ),
    formats: list[Format] = typer.Option(list(Format), "--format", help="What to write; repeat for several."),
) -> None:
    """Write a ranking for other tools: TREC run, qrels by id and by answer, DPR's retrieval JSON."""
    from eadpr.search import exports

    judged = positives / "positives.parquet"
    lines = []
    with exports.replacing_together(out) as folder:
        if Format.run in formats:
            count = exports.write_trec_run(ranking, folder / "run.trec", tag=tag or ranking.absolute().parent.name)
            lines.append(f"{count:,} lines in {out / 'run.trec'}")
        if Format.qrels_ids in formats:
            qrels = folder / "qrels-ids.trec"
            count = exports.write_id_qrels(records, judged, ranking, qrels, sets=question_sets)
            lines.append(f"{count:,} lines in {out / qrels.name}, for what the report counts by id")
        if Format.qrels_answers in formats:
            qrels = folder / "qrels-answers.trec"
            count = exports.write_answer_qrels(records, judged, ranking, qrels, sets=question_sets)
            lines.append(f"{count:,} lines in {out / qrels.name}, for what it counts by answer (top-k, MRR)")
        if Format.json in formats:
            count = exports.write_retrieval_json(ranking, records, folder / "retrieval.json")
            lines.append(f"{count:,} questions in {out / 'retrieval.json'}")
    for line in lines:
        typer.echo(f"export: {line}")
