"""Compare the arms: a Markdown table, also printed, CSV files for `dvc plots`, and the same plots as SVG."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections report and sets."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    metrics: Path = typer.Option(..., help="Folder of <arm>.json."),
    outcomes: Path = typer.Option(..., help="Folder of <arm>.parquet."),
    training: Path = typer.Option(..., help="Folder of the arms' training logs."),
    pairs: Path = typer.Option(..., help="Folder of the arms' pair scores."),
    distractors: Path | None = typer.Option(None, help="Folder with the distractors' report.json."),
    negatives: Path | None = typer.Option(None, help="Folder of <arm>/report.json."),
    evidence_metrics: Path | None = typer.Option(None, help="Metrics file of evaluate_evidence."),
    out: Path = typer.Option(..., help="Folder to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation import report
    from eadpr.evaluation.config import ReportArms

    settings, sets = configs.read(config, report=ReportArms, sets=Sets)
    inputs = report.Inputs(
        records=records,
        metrics=metrics,
        outcomes=outcomes,
        training=training,
        pairs=pairs,
        distractors=distractors,
        negatives=negatives,
        evidence_metrics=evidence_metrics,
    )
    markdown = report.run(inputs, out, settings=settings, sets=sets)
    for left in report.remove_inactive(inputs, settings):
        typer.echo(f"report: deleted {left}, of an arm that is not active (dvc checkout brings it back with the arm)")
    typer.echo(f"report: {len(settings.arms)} arms and BM25 in {out}\n\n{markdown}", nl=False)


if __name__ == "__main__":
    run(main)
