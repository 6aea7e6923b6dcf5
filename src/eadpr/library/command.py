"""The command `eadpr probe-model`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

Strategy = Literal["sentence", "pseudo", "window", "answer"]


def main(
    models: list[str] = typer.Argument(..., help="Folders of arms, or sentence-transformers by name or folder."),
    rows: Path = typer.Option(..., help="SQuAD's JSON, or CSV, TSV, JSONL, Parquet of question, answers, text, title."),
    columns: list[str] = typer.Option([], help="FIELD=COLUMN of the rows, as question=asked; again for each."),
    evidence: Strategy = typer.Option("sentence", help="window and answer have no sentence placebo."),
    annotator: str = typer.Option(None, help="The QA model for pseudo, e.g. data/atlas/annotator, or a name."),
    first: int = typer.Option(None, min=1, help="Only so many rows."),
    bm25: bool = typer.Option(False, help="A row for BM25, with the statistics of these passages."),
    units: bool = typer.Option(False, help="Each encoder by one vector, its best sentence and its tokens; ranks too."),
    join: str = typer.Option(None, help="One text of title and text; by default the model's way, or '{title} {text}'."),
) -> str:
    """Measure by answer awareness whether models know evidence: eadpr probe-model MODEL... --rows FILE."""
    from itertools import islice

    from eadpr.corpus.formats.columns import parse_columns
    from eadpr.library import awareness, scorers
    from eadpr.library import units as measured_units
    from eadpr.library.texts import distractors, read_rows

    if units and bm25:
        raise ValueError("--units has no row for BM25; ask for --bm25 in a run without it")
    for name in models:  # before a QA model looks for evidence
        if (kind := scorers.check_loadable(name)) != scorers.VECTORS:
            typer.echo(f"{name} is scored as a {kind}", err=True)
    chosen = islice(read_rows(rows, parse_columns(columns)), first)
    texts = list(distractors(chosen, evidence=evidence, annotator=annotator))
    if unanswered := sum("masked" not in row.variants for row in texts):
        typer.echo(f"{unanswered:,} of {len(texts):,} rows have no answer in their text", err=True)
    if all(set(row.variants) == {"positive"} for row in texts):
        raise ValueError(f"{rows}: no piece of any row can be removed, so nothing is measured; are answers lists?")
    if units:
        return measured_units.table(models, texts, join)
    results = {name: awareness.awareness(name, texts, join=join) for name in models}
    if bm25:
        corpus = list(dict.fromkeys(f"{row.title} {row.variants['positive']}" for row in texts))  # each passage once
        results["bm25"] = awareness.awareness(scorers.bm25(corpus), texts)
    return awareness.table(results)
