"""The command `eadpr add`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

SCRATCH = re.compile(r"\S*/eadpr-add-\w+/")  # where nobody can look
SHARE = 0.2  # of the questions, held out where no test questions are named


def main(
    name: str = typer.Argument(..., help="The collection: lower-case letters, digits and '-'."),
    files: list[Path] = typer.Argument(
        None,
        help="Passages and questions, told by their columns, or a table of both; a folder as BEIR's or MS MARCO's;"
        " SQuAD's JSON; hf:NAME:CONFIG:SPLIT of the Hub. Of a collection that is there: its files.",
    ),
    passages: Path = typer.Option(
        None, help="CSV, TSV, JSONL or Parquet with text, and if wanted id and title; or a folder of documents."
    ),
    questions: Path = typer.Option(None, help="CSV, TSV, JSONL or Parquet with question, answers, positives."),
    test_questions: Path = typer.Option(None, help="Questions to evaluate with; else a share of the others."),
    columns: list[str] = typer.Option([], help="FIELD=COLUMN of the passages, as text=body; again for each."),
    question_columns: list[str] = typer.Option([], help="FIELD=COLUMN of the questions, as answers=gold."),
    share: float = typer.Option(
        None, min=0.01, max=0.9, help="Share held out where no test questions are given.", show_default=str(SHARE)
    ),
    split_words: int = typer.Option(None, min=20, help="Split longer documents into passages of about so many words."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file; data/ is beside it."),
    dvc: bool = typer.Option(True, help="Track the files with DVC."),
    dry_run: bool = typer.Option(False, help="Read the files, show what is understood of them, and write nothing."),
) -> None:
    """Bring a collection's files in: eadpr add NAME PASSAGES QUESTIONS, or NAME FOLDER."""
    from eadpr.corpus.formats.columns import parse_columns
    from eadpr.corpus.formats.shapes import recognise
    from eadpr.runtime.terminal import printable
    from eadpr.settings.add_collection import add_files, add_own, load_values, track

    if bool(files) == bool(passages or questions):
        raise ValueError("give either --passages and --questions, or files or a folder")
    if test_questions and (files or share is not None):
        raise ValueError("--test-questions is for --passages and --questions alone, and none of these is then held out")
    if files and name in load_values(name, params)["collections"]:
        if columns or question_columns or split_words or share is not None:
            raise ValueError(f"{name} is there already; --share, --split-words, columns are for a new one")
        added = add_files(name, files, params=params, dry_run=dry_run)
    else:
        share = SHARE if share is None else share
        with recognise(files or [], passages=passages, questions=questions, test_questions=test_questions) as inputs:
            inputs = inputs._replace(columns=parse_columns(columns), question_columns=parse_columns(question_columns))
            added = add_own(name, inputs, share=share, split_words=split_words, params=params, dry_run=dry_run)
        typer.echo(printable(inputs.description))
    for line in _report_lines(added):
        typer.echo(printable(line))
    if dvc and not dry_run:
        track(added.folder, repository=params.absolute().parent)
    written_nothing = [*added.report.get("first", []), "add: nothing was written (--dry-run)"]
    for line in written_nothing if dry_run else _next_steps(name, added):
        typer.echo(printable(line))


def _report_lines(added: Any) -> Iterator[str]:
    from eadpr.runtime.terminal import counted

    report = added.report
    if not report:
        yield "the files were not read yet: `dvc repro` reads them"
    for file, columns in report.get("columns", {}).items():
        fields = [field if field == column else f"{field} from {column}" for field, column in columns["read"].items()]
        unread = f"; not read: {', '.join(columns['unread'])}" if columns["unread"] else ""
        yield f"{file}: {', '.join(fields)}{unread}"
    for question_set, counts in sorted(report.get("sets", {}).items()):
        bare, hopeless = counts["without_positive"], counts.get("without_either", 0)
        phrases = {0: "each with a positive", counts["questions"]: "none with a positive"}
        question_count = counted(counts["questions"], "question")
        line = f"{question_set}: {question_count}, {phrases.get(bare, f'{bare:,} without a positive')}"
        if bare > hopeless and not counts["without_answers"]:
            line += ", for which BM25 will look for one that holds an answer"
        if hopeless:
            line += f"; {hopeless:,} have neither that nor an answer to look for: never learnt from, wrong if evaluated"
        yield line
    yield from report.get("offers", ())
    yield from filter(None, (report.get("unheld"), added.few))
    for kind, odd in report.get("odd_rows", {}).items():
        yield f"{odd['count']:,} of {odd['of']:,} {kind}: {SCRATCH.sub('made into ', '; '.join(odd['first']))}"
    if number := report.get("own_documents"):
        yield f"{number:,} questions are passages too, by id or text: neither ranked nor negatives (keep_own_documents)"
    if number := report.get("long"):
        yield f"{number:,} passages have over 200 words; encoders read the first of them: --split-words 100 cuts them"
    for question_set, count in report.get("again", {}).items():
        yield f"{question_set}: {count:,} questions stand there again; give all positives of a question in one row"
    for question_set, count in report.get("in_both", {}).items():
        yield f"{question_set}: {count:,} of its questions are trained on too, word for word; results will flatter"
    if added.held_out:
        how = "by the title of the first positive where one is given, else by question"
        yield f"own/test is held out of the questions, about {added.held_out:.0%}, {how} (--share)"
        if added.few:
            yield f"for a larger test set raise test_share in {added.file}, or add it anew with --test-questions FILE"


def _next_steps(name: str, added: Any) -> Iterator[str]:
    from eadpr.report.notes import command_for_few
    from eadpr.runtime.terminal import counted

    command = command_for_few(name, answers=added.answers) if added.few else f"dvc exp run -S collection={name}"
    if added.needs_annotator:
        yield "without answers the evidence is the sentence that matters most to MODEL, a reranker or an encoder"
        command += " -S annotator.model=MODEL"
    passages = f", {counted(added.report['passages'], 'passage')}" if added.report else ""
    yield f"add: {name} is in {added.folder}{passages}; next: {command}"
