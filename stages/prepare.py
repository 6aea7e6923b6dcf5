"""Read the active collection's files, or generate it, and write its records."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: source, prepare, atlas, facts, paq."),
    sources: Path = typer.Option(..., help="Folder with the collection's own files."),
    raw: Path = typer.Option(..., help="Folder with its downloaded files."),
    out: Path = typer.Option(..., help="Folder for the records."),
) -> None:
    from eadpr.atlas.generate import Atlas, generate
    from eadpr.config import read
    from eadpr.corpus.facts import Facts
    from eadpr.corpus.paq import Paq
    from eadpr.corpus.prepare import prepare, write_generated
    from eadpr.corpus.sources import Prepare, Source

    source, settings, atlas, facts, paq = read(
        config, source=Source, prepare=Prepare, atlas=Atlas, facts=Facts, paq=Paq
    )
    if source.format == "atlas":
        generated = generate(atlas)
        report = write_generated(generated.blocks(), out=out, passages=len(generated))
    else:
        report = prepare(source, settings, sources=sources, raw=raw, out=out, facts=facts, paq=paq)
    counts = f"{report['passages']:,} passages, {report['questions']:,} questions in {len(report['sets'])} sets"
    typer.echo(f"prepare: {counts}")


if __name__ == "__main__":
    run(main)
