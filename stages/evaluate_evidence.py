"""Measure how often the chosen span is the annotated one."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(...),
    records: Path = typer.Option(...),
    positives: Path = typer.Option(...),
    evidence: Path = typer.Option(...),
    distractors: Path = typer.Option(...),
    metrics: Path = typer.Option(...),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.evaluation.evidence import evaluate_evidence

    (sets,) = read(config, sets=Sets)
    count = evaluate_evidence(
        sets, records=records, positives=positives, evidence=evidence, distractors=distractors, out=metrics
    )
    typer.echo(f"{count} chosen spans compared")


if __name__ == "__main__":
    run(main)
