"""Does a model know evidence? Answer awareness and its controls: python -m stages.probe_model MODEL... --rows FILE."""

from __future__ import annotations

from pathlib import Path

import typer

from eadpr.commands import command


@command
def main(
    models: list[str] = typer.Argument(..., help="Folders of arms, or sentence-transformers by name or folder."),
    rows: Path = typer.Option(..., help="SQuAD's JSON, or CSV, TSV, JSONL, Parquet of question, answers, text, title."),
    evidence: str = typer.Option("sentence", help="What is evidence: sentence, window, answer, or pseudo."),
    annotator: Path = typer.Option(None, help="The QA model for pseudo, e.g. data/atlas/annotator."),
    first: int = typer.Option(None, min=1, help="Only so many rows."),
    bm25: bool = typer.Option(False, help="A row for BM25, with the statistics of these passages."),
    join: str = typer.Option(
        None,
        help="One text of title and text, for models of sentence-transformers; by default as `publish` wrote it into "
        "the folder, else '{title} {text}'.",
    ),
    out: Path = typer.Option(None, help="Write the table to this file in place of printing it."),
) -> str | None:
    from itertools import islice

    from eadpr import files
    from eadpr.library import awareness, texts

    made = list(texts.distractors(islice(texts.rows_of(rows), first), evidence=evidence, annotator=annotator))
    found = {name: awareness.awareness(name, made, join=join) for name in models}
    if bm25:
        found["bm25"] = awareness.awareness(awareness.bm25(one.variants["positive"] for one in made), made)
    table = awareness.table(found)
    if out is None:
        return table
    files.write_text(out, f"{table}\n")
    return f"probe_model: {len(made):,} rows, {len(found)} models, in {out}"
