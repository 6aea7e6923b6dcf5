"""Show questions of which one arm ranks a hit first and another does not: python -m stages.cases eadpr dpr.

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from eadpr.settings.command import command


@command
def main(
    first: str = typer.Argument(..., help="The active arm whose first passage is a hit."),
    second: str = typer.Argument(..., help="The active arm whose first passage is none."),
    question_set: str = typer.Option(None, "--set", help="set/split; by default the first of sets.evaluate."),
    kind: str = typer.Option(None, "--type", help="Only questions of this type: who, when, what, where, how, which."),
    count: int = typer.Option(3, min=1, help="Questions shown."),
    depth: int = typer.Option(3, min=1, help="Passages shown of each arm."),
    seed: int = typer.Option(0, min=0, help="Of the draw."),
    collection: str = typer.Option(None, help="By default that of params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
    out: Path = typer.Option(None, help="Write <OUT>/<collection>/cases-FIRST-SECOND.md in place of printing it."),
) -> str:
    from eadpr.runtime import files
    from eadpr.settings.resolve import load, merged
    from eadpr.settings.yaml import of_collection
    from eadpr.studies import provenance
    from eadpr.studies.cases import cases
    from eadpr.text.question_types import TYPES

    if kind not in (None, *TYPES):
        raise ValueError(f"--type {kind}: no such type; known are {', '.join(TYPES)}")
    values = load(params)
    chosen = collection or values["collection"]
    own = of_collection(values, chosen)
    question_set = question_set or own["sets"]["evaluate"][0]
    made = Path("data") / chosen
    known = sorted(path.stem for path in (made / "outcomes").glob("*.parquet"))
    if known and (unknown := [arm for arm in (first, second) if arm not in known]):
        raise ValueError(f"{unknown[0]} was not evaluated on {chosen}; what was: {', '.join(known)}")
    strategy = merged(values, own["settings"])["probe"]["strategy"]
    options = {"kind": kind, "count": count, "depth": depth, "seed": seed, "strategy": strategy}
    text = cases(made, (first, second), question_set, **options)
    title = f"# {first} against {second}"
    if out is None:
        return f"{title}\n\n{text}"
    path = out / chosen / f"cases-{first}-{second}.md"
    found = provenance.of_run("cases", sys.argv[1:], provenance.commit(), values | {"collection": chosen})
    files.write_text(path, provenance.written(title, found, text))
    return f"cases: {path}"
