"""Build the QA models that annotate evidence, or name the one to use."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(...),
    records: Path = typer.Option(...),
    positives: Path = typer.Option(...),
    out: Path = typer.Option(...),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.machine import Machine, settle
    from eadpr.model_folders import ModelFiles
    from eadpr.supervision.config import Annotator

    sections = read(config, annotator=Annotator, annotator_files=ModelFiles, sets=Sets, machine=Machine)
    settings, given, sets, machine = sections
    settle(machine)
    from eadpr.supervision.annotator import build_annotator

    manifest = build_annotator(settings, sets, machine, records=records, positives=positives, out=out, given=given)
    typer.echo(f"{len(manifest.models)} annotators ({manifest.source})")


if __name__ == "__main__":
    run(main)
