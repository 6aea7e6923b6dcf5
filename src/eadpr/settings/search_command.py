"""The command `eadpr search`."""

import sys
from pathlib import Path

import typer

from eadpr.settings.command import active_collection


def main(
    question: str = typer.Argument(..., help="What to ask the passages."),
    arm: str = typer.Option(None, help="By default the one validation prefers."),
    collection: str = typer.Option(None, help="By default the one in params.yaml."),
    k: int = typer.Option(5, "--k", min=1, help="Passages shown."),
    as_json: bool = typer.Option(False, "--json", help="JSON in the place of text."),
) -> None:
    """Show the best passages for a question, with the sentence that it matches: eadpr search "who wrote Hamlet"."""
    from eadpr.library import search

    folder = search.find_collection(Path("data"), collection or active_collection())
    passages = search.find_passages(folder, arm or search.choose_arm(folder), question, k)
    typer.echo(search.write_json(passages) if as_json else search.write_text(passages, bold=sys.stdout.isatty()))
