"""Show how much each arm loses as near-duplicates join the corpus: a Markdown table, also printed, a CSV, an SVG."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections measured, robustness and sets."),
    robustness: Path = typer.Option(..., help="Folder of the arms' outcomes, a folder each."),
    duplicates: Path = typer.Option(..., help="Folder with the near-duplicates' report.json."),
    out: Path = typer.Option(..., help="Folder to write."),
) -> None:
    from eadpr import config as configs
    from eadpr.config import Sets
    from eadpr.evaluation import robustness_report
    from eadpr.evaluation.config import ReportArms, Robustness

    settings, counts, sets = configs.read(config, measured=ReportArms, robustness=Robustness, sets=Sets)
    markdown = robustness_report.run(robustness, duplicates, out, settings=settings, counts=counts, sets=sets)
    for left in robustness_report.remove_inactive(robustness, settings):
        typer.echo(f"robustness_report: deleted {left}, of an arm that is not measured any more")
    typer.echo(f"robustness_report: {len(settings.arms)} arms in {out}\n\n{markdown}", nl=False)


if __name__ == "__main__":
    run(main)
