"""Tables of the collection, its relations and what the active arms took: python -m stages.describe.

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from eadpr.settings.command import command


@command
def main(
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
    out: Path = typer.Option(None, help="Write <OUT>/<collection>/collection.md in place of printing it."),
) -> str:
    from eadpr.runtime import files
    from eadpr.settings.resolve import load
    from eadpr.studies import provenance
    from eadpr.studies import trainings as describe

    values = load(params)
    chosen = values["collection"]
    made = Path("data") / chosen
    parts = [describe.collection(made / "records", made / "positives" / "positives.parquet")]
    if found := describe.relations(made / "records"):
        parts += ["## Relations", found]
    parts += ["## Training", describe.resources(made, values)]
    title, text = f"# {chosen}", "\n\n".join(parts) + "\n"
    if out is None:
        return f"{title}\n\n{text}"
    path = out / chosen / "collection.md"
    found = provenance.of_run("describe", sys.argv[1:], provenance.commit(), values)
    files.write_text(path, provenance.written(title, found, text))
    return f"describe: {path}"
