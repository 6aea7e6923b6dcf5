"""Bring a collection's files in: python -m stages.add NAME --passages FILE --questions FILE."""

from __future__ import annotations

from pathlib import Path

import typer

from eadpr.commands import command


@command
def main(
    name: str = typer.Argument(..., help="The collection: lower-case letters, digits and '-'."),
    files: list[Path] = typer.Argument(None, help="Files of a collection that is described already."),
    passages: Path = typer.Option(None, help="TSV, JSONL or Parquet with text, and if wanted id and title."),
    questions: Path = typer.Option(None, help="TSV, JSONL or Parquet with question, answers, positives."),
    test_questions: Path = typer.Option(None, help="Questions to evaluate with; else a share of the others."),
    share: float = typer.Option(0.2, min=0.01, max=0.9, help="Share held out where no test questions are given."),
    split_words: int = typer.Option(None, min=20, help="Split longer documents into passages of about so many words."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file; data/ is beside it."),
    dvc: bool = typer.Option(True, help="Track the files with DVC."),
) -> None:
    from eadpr.corpus.add import add_files, add_own, track
    from eadpr.params import load, with_distractors

    if bool(files) == bool(passages or questions):
        raise ValueError("give either --passages and --questions, or the files of a collection that there is")
    if files:
        added = add_files(name, files, params=params)
    elif passages is None or questions is None:
        raise ValueError("give both --passages and --questions")
    else:
        added = add_own(
            name,
            passages=passages,
            questions=questions,
            test_questions=test_questions,
            share=share,
            split_words=split_words,
            params=params,
        )
    if dvc:
        track(added.folder, repository=params.absolute().parent)
    for question_set, counts in sorted(added.report.get("sets", {}).items()):
        typer.echo(
            f"{question_set}: {counts['questions']:,} questions, {counts['without_positive']:,} without a positive"
        )
    if added.new and test_questions is None:
        how = "by the title of the first positive where one is given, else by question"
        typer.echo(f"own/test was held out of {questions}, about {share:.0%}, {how} (test_share in {added.file})")
    command = f"dvc exp run -S collection={name}"
    if not added.answers:
        typer.echo("without answers there is no evidence: leave out the arms that train on distractors")
        command += "".join(f" -S '~active.{arm}'" for arm in with_distractors(load(params)))
    passages_said = f", {added.report['passages']:,} passages" if added.report else ""
    typer.echo(f"add: {name} is in {added.folder}{passages_said}; next: {command}")
