"""Index the passages with Lucene and rank them by BM25 for the questions trained on and evaluated on."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections bm25 and sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    out: Path = typer.Option(..., help="Folder to write train.parquet and evaluate.parquet to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.supervision.bm25 import BM25, rank_question_sets

    bm25, sets = read(config, bm25=BM25, sets=Sets)
    count = rank_question_sets(records, out, bm25=bm25, sets=sets)
    typer.echo(f"bm25: ranked passages for {count:,} questions")


if __name__ == "__main__":
    run(main)
