"""Make passages like the positives that hold no answer, by one generator."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings of the generator."),
    sources: Path = typer.Option(..., help="Folder of the collection's own files."),
    raw: Path = typer.Option(..., help="Folder of the collection's downloads."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet."),
    distractors: Path = typer.Option(..., help="Folder of distractors.parquet."),
    out: Path = typer.Option(..., help="Folder to write near_duplicates.parquet and report.json to."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.corpus.sources import Source
    from eadpr.machine import Machine, settle
    from eadpr.model_folders import ModelFiles
    from eadpr.near_duplicates.config import Generation

    settings, given, source, sets, machine = read(
        config, near_duplicates=Generation, near_duplicates_files=ModelFiles, source=Source, sets=Sets, machine=Machine
    )
    if settings.generator == "seq2seq":
        settle(machine)
    from eadpr.near_duplicates.generate import Inputs, write_near_duplicates

    inputs = Inputs(sources=sources, raw=raw, records=records, positives=positives, distractors=distractors)
    report = write_near_duplicates(settings, source, sets, machine, given=given, inputs=inputs, out=out)
    typer.echo(f"{report['near_duplicates']:,} near-duplicates of {report['questions']:,} questions")


if __name__ == "__main__":
    run(main)
