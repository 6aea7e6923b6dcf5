"""Write the positives without their evidence, and what was dropped and why."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(...),
    records: Path = typer.Option(...),
    positives: Path = typer.Option(...),
    evidence: Path = typer.Option(...),
    out: Path = typer.Option(...),
) -> None:
    from eadpr.config import read
    from eadpr.supervision.config import Distractors
    from eadpr.supervision.distractors import write_distractors

    (settings,) = read(config, distractors=Distractors)
    count = write_distractors(settings, records=records, positives=positives, evidence=evidence, out=out)
    typer.echo(f"{count} distractors")


if __name__ == "__main__":
    run(main)
