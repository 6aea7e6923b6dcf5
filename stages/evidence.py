"""Find the evidence spans of every positive passage."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(...),
    records: Path = typer.Option(...),
    positives: Path = typer.Option(...),
    annotator: Path = typer.Option(...),
    out: Path = typer.Option(...),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.machine import Machine, settle
    from eadpr.supervision.config import EvidenceSettings

    settings, sets, machine = read(config, evidence=EvidenceSettings, sets=Sets, machine=Machine)
    settle(machine)
    from eadpr.supervision.evidence import find_evidence

    count = find_evidence(
        settings, sets, machine, records=records, positives=positives, annotator_folder=annotator, out=out
    )
    typer.echo(f"{count} rows of evidence")


if __name__ == "__main__":
    run(main)
