"""The command `eadpr add`."""

from __future__ import annotations

from pathlib import Path

import typer


def main(
    name: str = typer.Argument(..., help="The collection: lower-case letters, digits and '-'."),
    files: list[Path] = typer.Argument(
        None, help="Of a new one a folder as BEIR's or MS MARCO's, or SQuAD's JSON; else the files that it is to have."
    ),
    passages: Path = typer.Option(
        None, help="CSV, TSV, JSONL or Parquet with text, and if wanted id and title; or a folder of documents."
    ),
    questions: Path = typer.Option(None, help="CSV, TSV, JSONL or Parquet with question, answers, positives."),
    test_questions: Path = typer.Option(None, help="Questions to evaluate with; else a share of the others."),
    columns: list[str] = typer.Option([], help="FIELD=COLUMN of the passages, as text=body; again for each."),
    question_columns: list[str] = typer.Option([], help="FIELD=COLUMN of the questions, as answers=gold."),
    share: float = typer.Option(
        None, min=0.01, max=0.9, help="Share held out where no test questions are given.", show_default="0.2"
    ),
    split_words: int = typer.Option(None, min=20, help="Split longer documents into passages of about so many words."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file; data/ is beside it."),
    dvc: bool = typer.Option(True, help="Track the files with DVC."),
    dry_run: bool = typer.Option(False, help="Read the files, show what is understood of them, and write nothing."),
) -> None:
    """Bring a collection's files in: eadpr add NAME --passages FILE --questions FILE, or NAME FOLDER."""
    options = dict(locals())
    from eadpr.settings.add_program import add

    for line in add(**options | {"files": files or []}):
        typer.echo(line)
