"""Bring a collection's files in: python -m stages.add NAME --passages FILE --questions FILE, or NAME FOLDER."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from eadpr.settings.command import command


def _say(report: dict[str, Any]) -> None:
    if not report:
        typer.echo("the files were not read: `dvc repro` reads them with the collection's downloads")
    for file, columns in report.get("columns", {}).items():
        read = ", ".join(
            field if field == column else f"{field} from {column}" for field, column in columns["read"].items()
        )
        unread = f"; not read: {', '.join(columns['unread'])}" if columns["unread"] else ""
        typer.echo(f"{file}: {read}{unread}")
    for question_set, counts in sorted(report.get("sets", {}).items()):
        bare = counts["without_positive"]
        hopeless = counts.get("without_either", 0)
        sought = bare > hopeless and not counts["without_answers"]
        then = ", for which BM25 will look for one that holds an answer" * sought
        if hopeless:
            then += f"; {hopeless:,} have neither that nor an answer to look for: never learnt from, wrong if evaluated"
        typer.echo(f"{question_set}: {counts['questions']:,} questions, {bare:,} without a positive{then}")
    for question_set, count in report.get("in_both", {}).items():
        typer.echo(
            f"{question_set}: {count:,} of its questions are trained on too, word for word; results will flatter"
        )


def _next(name: str, answers: bool, params: Path) -> str:
    from eadpr.settings.resolve import load, with_distractors

    command = f"dvc exp run -S collection={name}"
    if answers:
        return command
    typer.echo("without answers there is no evidence: leave out the arms that train on distractors")
    return command + "".join(f" -S '~active.{arm}'" for arm in with_distractors(load(params)))


@command
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
    from eadpr.corpus.formats import shapes
    from eadpr.corpus.formats.columns import by_field
    from eadpr.settings.add_collection import add_files, add_own, described, track

    if bool(files) == bool(passages or questions):
        raise ValueError("give either --passages and --questions, or files or a folder")
    if test_questions and (files or share is not None):
        raise ValueError("--test-questions is for --passages and --questions alone, and none of these is then held out")
    if files and described(name, params):
        if dry_run or columns or question_columns or split_words or share is not None:
            raise ValueError(f"{name} is there already; --dry-run, --share, --split-words, columns are for a new one")
        added = add_files(name, files, params=params)
    else:
        share = 0.2 if share is None else share
        with shapes.found(files, passages=passages, questions=questions, test_questions=test_questions) as shape:
            given = shape.files._replace(columns=by_field(columns), question_columns=by_field(question_columns))
            added = add_own(name, given, share=share, split_words=split_words, params=params, dry_run=dry_run)
        typer.echo(shape.said)
    _say(added.report)
    if added.held_out:
        how = "by the title of the first positive where one is given, else by question"
        typer.echo(f"own/test is held out of the questions, about {share:.0%}, {how} (test_share in {added.file})")
    if dry_run:
        typer.echo("\n".join([*added.report["first"], "add: nothing was written (--dry-run)"]))
        return
    if dvc:
        track(added.folder, repository=params.absolute().parent)
    passages_said = f", {added.report['passages']:,} passages" if added.report else ""
    typer.echo(f"add: {name} is in {added.folder}{passages_said}; next: {_next(name, added.answers, params)}")
