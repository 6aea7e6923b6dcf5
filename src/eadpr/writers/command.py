"""The command `eadpr ask-passages`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer


def main(
    source: Path = typer.Argument(..., help="A folder of .txt and .md files, or passages: CSV, TSV, JSONL, Parquet."),
    out: Path = typer.Option(..., help="A new folder, for passages.jsonl and questions.jsonl."),
    model: str = typer.Option(None, help="A T5, or with --url a name there; without it sentences are the questions."),
    url: str = typer.Option(None, help="An OpenAI-compatible server, up to, not including, /chat/completions."),
    key_variable: str = typer.Option(None, help="The environment variable that holds the server's key."),
    prompt: str = typer.Option(None, help="With {sentence} or {marked}, and if wanted {title} and {text}."),
    sample: int = typer.Option(None, min=1, help="Ask about so many passages, drawn; else about all."),
    per_passage: int = typer.Option(1, min=1, help="Sentences asked about in each passage, at most."),
    within: int = typer.Option(10, min=1, help="A question is kept if BM25 ranks its passage among so many."),
    columns: list[str] = typer.Option([], help="FIELD=COLUMN of the passages, as text=body; again for each."),
    split_words: int = typer.Option(None, min=20, help="Split longer documents into passages of about so many words."),
    seed: int = typer.Option(0, help="Draws passages and sentences."),
) -> str:
    """Write questions about passages, with their evidence: eadpr ask-passages FOLDER --model T5 --out NEW."""
    from eadpr.corpus.formats.columns import parse_columns
    from eadpr.writers import ask
    from eadpr.writers.config import Endpoint
    from eadpr.writers.endpoint import complete_all

    if url and not model:
        raise ValueError("--url needs --model, a model's name there")
    passages = ask.read_passages(source, parse_columns(columns), split_words)  # before a model is looked for
    if url:
        sampling = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 256, "prompt": "{text}"}
        server = Endpoint(url=url, model=model, key_variable=key_variable, **sampling)
        write, form = partial(complete_all, server, seed=seed), prompt or ask.ENDPOINT_PROMPT
    elif model:
        write, form = ask.write_by_seq2seq(model), prompt or ask.SEQ2SEQ_PROMPT
    else:
        write, form = list, prompt or "{sentence}"
    choice = {"sample": sample, "per_passage": per_passage, "within": within, "seed": seed}
    counts = ask.ask_passages(passages, write, form, out, **choice)
    dropped = [f"{count:,} {reason}" for reason, count in counts.items() if reason not in ("asked", "kept") and count]
    summary = f"{counts['kept']:,} of {counts['asked']:,} questions kept ({', '.join(dropped) or 'all'})"
    return f"ask-passages: {summary}\nnext: eadpr add NAME {out / 'passages.jsonl'} {out / 'questions.jsonl'}"
