"""Do to the program what goes wrong around it and write what came of it into docs/faults.md: `make faults`."""

import importlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import typer

from benchmarks.faults.counts import Count

NAMES = ("kills", "disk", "tampering", "twins", "inputs", "outside", "load")
KEPT = Path(".cache/faults")
DOCUMENT = Path("docs/faults.md")


def main(
    seed: int = typer.Option(1, min=0, help="Of all draws; the same seed does the same things."),
    only: str = typer.Option(",".join(NAMES), help="Modules of benchmarks/faults; the page keeps the others' rows."),
    share: float = typer.Option(1.0, min=0, help="Part of the full numbers."),
    counts: Path = typer.Option(KEPT, help="Folder of the counts, a file for each module, which the page is made of."),
    out: Path = typer.Option(DOCUMENT, help="The page."),
) -> None:
    from eadpr.files import write_json, write_text
    from eadpr.provenance import commit

    names = only.split(",") if only else []
    if unknown := set(names) - set(NAMES):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: known are {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:  # one, since building the toy takes its time
        for name in names:
            typer.echo(f"{name} …", err=True)
            began = time.monotonic()
            found = importlib.import_module(f"benchmarks.faults.{name}").run(seed, Path(folder), share)
            about = {"commit": commit(), "seed": seed, "share": share, "minutes": (time.monotonic() - began) / 60}
            write_json(counts / f"{name}.json", about | {"counts": [count._asdict() for count in found]})
    kept = {name: counts / f"{name}.json" for name in NAMES}
    made = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in kept.items() if path.exists()}
    write_text(out, page(made))
    typer.echo(f"faults: {out}")


def page(made: dict[str, Any]) -> str:
    """Of the counts that there are, by module."""
    rows, remaining, runs = [], [], []
    for name, found in made.items():
        counts = [Count(**count) for count in found["counts"]]
        rows += [f"| {name} | {count.kind} | {' | '.join(f'{n:,}' for n in count[1:-1])} |" for count in counts]
        remaining += [f"* *{count.kind}*: {' '.join(note.split())}" for count in counts for note in count.notes]
        part = "" if found["share"] == 1 else f", {found['share']:.0%} of the full numbers"
        runs.append(f"{name}: commit {found['commit']}, seed {found['seed']}{part}, {found['minutes']:.0f} min.")
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    parts = {"runs": "\n".join(f"* {run}" for run in runs), "rows": "\n".join(rows)}
    return template.format(**parts, remaining="\n".join(remaining) or "Nothing.")


if __name__ == "__main__":
    typer.run(main)
