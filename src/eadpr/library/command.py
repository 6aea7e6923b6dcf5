"""The command `eadpr probe-model`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from eadpr.library.texts import Texts


def _load_model(name: str, key_variable: str | None, join: str | None) -> Any:
    from eadpr.library import endpoint, scorers

    if not name.startswith(("http://", "https://")):
        scorers.check_loadable(name)
        return name
    url, _, model = name.partition("#")
    if not model:
        raise ValueError(f"{name} names no model of this endpoint; write it behind a #, as in {name}#bge-m3")
    return endpoint.endpoint(url, model, key_variable=key_variable, join=join or scorers.JOIN)


def _make_texts(
    rows: Path, columns: list[str], first: int | None, evidence: Any, annotator: Path | None
) -> list[Texts]:
    from itertools import islice

    from eadpr.corpus.formats.columns import parse_columns
    from eadpr.library.texts import distractors, read_rows

    if not rows.is_file():
        raise ValueError(f"--rows {rows} is no file")
    texts = list(
        distractors(islice(read_rows(rows, parse_columns(columns)), first), evidence=evidence, annotator=annotator)
    )
    if unanswered := sum("masked" not in row.variants for row in texts):
        typer.echo(f"{unanswered:,} of {len(texts):,} rows have no answer in their text", err=True)
    if texts and all(set(row.variants) == {"positive"} for row in texts):
        raise ValueError(
            f"{rows}: of no row can a piece be removed, so there is nothing to measure; are answers lists?"
        )
    return texts


def main(
    models: list[str] = typer.Argument(
        ...,
        help="Folders of arms, sentence-transformers by name or folder, or URL#NAME of OpenAI-compatible endpoints for"
        " embeddings, as http://127.0.0.1:8000/v1#bge-m3.",
    ),
    rows: Path = typer.Option(..., help="SQuAD's JSON, or CSV, TSV, JSONL, Parquet of question, answers, text, title."),
    columns: list[str] = typer.Option([], help="FIELD=COLUMN of the rows, as question=asked; again for each."),
    evidence: str = typer.Option(
        "sentence",
        help="The evidence: sentence or pseudo; or window or answer, which have no controlled AA-evidence.",
    ),
    annotator: Path = typer.Option(None, help="The QA model for pseudo, e.g. data/atlas/annotator."),
    first: int = typer.Option(None, min=1, help="Only so many rows."),
    bm25: bool = typer.Option(False, help="A row for BM25, with the statistics of these passages."),
    join: str = typer.Option(
        None,
        help="One text of title and text, for models that read one; by default as `publish` wrote it into the folder,"
        " else '{title} {text}'.",
    ),
    key_variable: str = typer.Option(None, help="The environment variable with the key of the endpoints."),
    out: Path = typer.Option(None, help="Write the table to this file instead of printing it."),
    plot: Path = typer.Option(None, help="Write a plot to this file too, an SVG."),
) -> str | None:
    """Measure by answer awareness whether models know evidence: eadpr probe-model MODEL... --rows FILE."""
    from eadpr.library import awareness
    from eadpr.library.bm25 import bm25 as score_by_bm25
    from eadpr.runtime import files

    if plot and plot.suffix != ".svg":
        raise ValueError(f"--plot {plot}: only SVG is written; let the name end in .svg")
    scorers = {name: _load_model(name, key_variable, join) for name in models}
    texts = _make_texts(rows, columns, first, evidence, annotator)
    results = {name: awareness.awareness(scorer, texts, join=join) for name, scorer in scorers.items()}
    if bm25:
        corpus = dict.fromkeys(f"{row.title} {row.variants['positive']}" for row in texts)  # each passage once
        results["bm25"] = awareness.awareness(score_by_bm25(corpus), texts)
    table = awareness.table(results)
    if out is None:
        typer.echo(table)
    else:
        files.write_text(out, f"{table}\n")
    if plot:  # last, so that the table is there even if the plot fails
        files.write_text(plot, awareness.plot(results))
    return None if out is None else f"probe_model: {len(texts):,} rows, {len(results)} models, in {out}"
