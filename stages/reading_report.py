"""Compare rankings by what a reader answers from them: a Markdown table, also printed."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections rankings, read and sets."),
    outcomes: Path = typer.Option(..., help="Folder of the reader's outcomes, a table per ranking."),
    metrics: Path = typer.Option(..., help="Folder of the rankings' own metrics."),
    out: Path = typer.Option(..., help="Folder to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation import reading_report
    from eadpr.evaluation.config import ReportArms
    from eadpr.reading.config import Read

    settings, read, sets = configs.read(config, rankings=ReportArms, read=Read, sets=Sets)
    markdown = reading_report.run(outcomes, metrics, out, settings=settings, read=read, sets=sets)
    for left in reading_report.remove_inactive(outcomes, settings):
        typer.echo(f"reading_report: deleted {left}, of a ranking that is not read any more")
    typer.echo(f"reading_report: {len(settings.trainings)} rankings in {out}\n\n{markdown}", nl=False)


if __name__ == "__main__":
    run(main)
