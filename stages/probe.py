"""Score each evaluation question with its positive, its distractor and its masked passage."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections probe, sets and machine."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    distractors: Path = typer.Option(..., help="Folder of distractors.parquet."),
    model: Path = typer.Option(..., help="Folder of question_encoder and passage_encoder."),
    out: Path = typer.Option(..., help="Table of pair scores to write."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.machine import Machine, settle
    from eadpr.search.config import Probe

    settings, sets, machine = read(config, probe=Probe, sets=Sets, machine=Machine)
    settle(machine)
    from eadpr.search.probe import probe

    tables = positives / "positives.parquet", distractors / "distractors.parquet"
    count = probe(records, *tables, model, out, settings=settings, sets=sets)
    typer.echo(f"probe: scored the pairs of {count:,} questions")


if __name__ == "__main__":
    run(main)
