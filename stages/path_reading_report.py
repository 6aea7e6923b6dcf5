"""Compare rankings of paths by what a reader answers from them: a Markdown table, also printed."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections path_rankings and sets."),
    outcomes: Path = typer.Option(..., help="Folder of the reader's outcomes, a table per ranking."),
    metrics: Path = typer.Option(..., help="Folder of the reader's metrics, a file per ranking."),
    out: Path = typer.Option(..., help="Folder to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation import path_reading_report
    from eadpr.evaluation.config import ReportArms
    from eadpr.evaluation.reading_report import remove_inactive

    settings, sets = configs.read(config, path_rankings=ReportArms, sets=Sets)
    markdown = path_reading_report.run(outcomes, metrics, out, settings=settings, sets=sets)
    for left in remove_inactive(outcomes, settings) + remove_inactive(metrics, settings, ".json"):
        typer.echo(f"path_reading_report: deleted {left}, of a ranking that is not read any more")
    typer.echo(f"path_reading_report: {len(settings.arms)} rankings in {out}\n\n{markdown}", nl=False)


if __name__ == "__main__":
    run(main)
