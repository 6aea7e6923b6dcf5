"""Download the active collection's files, checked, and check its local ones."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: source."),
    sources: Path = typer.Option(..., help="Folder with the collection's own files and pins.json."),
    out: Path = typer.Option(..., help="Folder for the downloaded files."),
) -> None:
    from eadpr.config import read
    from eadpr.corpus.fetch import fetch
    from eadpr.corpus.sources import Source

    (source,) = read(config, source=Source)
    new = fetch(source, sources=sources, out=out)
    if new:
        typer.echo(f"fetch: recorded sha256 and size of {', '.join(new)} in {sources / 'pins.json'}; commit it to git")
    typer.echo(f"fetch: {sum(file.url is not None for file in source.files)} of {len(source.files)} files downloaded")


if __name__ == "__main__":
    run(main)
