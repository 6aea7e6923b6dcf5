"""Do to the program what goes wrong around it and write what came of it into docs/faults.md: `make faults`."""

import importlib
import json
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import typer

from benchmarks.faults.counts import Count

NAMES = ("kills", "disk", "inputs")  # long ones first
CORES = 2
KEPT = Path("benchmarks/faults/made")
DOCUMENT = Path("docs/faults.md")


def main(
    seed: int = typer.Option(1, min=0, help="Of all draws; the same seed does the same things."),
    only: str = typer.Option(",".join(NAMES), help="Modules of benchmarks/faults; the page keeps the others' rows."),
    share: float = typer.Option(1.0, min=0, help="Part of the full numbers."),
    counts: Path = typer.Option(KEPT, help="Folder of the counts, a file for each module, which the page is made of."),
    out: Path = typer.Option(DOCUMENT, help="The page."),
    folder: Path = typer.Option(None, help="Run the one module in this process, and in this folder."),
) -> None:
    from eadpr.runtime.files import write_text

    names = only.split(",") if only else []
    if unknown := set(names) - set(NAMES):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: known are {', '.join(NAMES)}")
    if folder:
        return _count(names[0], seed, share, folder, counts / f"{names[0]}.json")
    with tempfile.TemporaryDirectory(prefix="faults-") as shared, ThreadPoolExecutor(CORES) as pool:
        options = ["--seed", seed, "--share", share, "--counts", counts, "--folder", shared]
        command = [sys.executable, "-m", "benchmarks.faults", *map(str, options), "--only"]
        codes = list(pool.map(lambda name: subprocess.run([*command, name], check=False).returncode, names))
    paths = {name: counts / f"{name}.json" for name in NAMES}
    records = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
    write_text(out, page(records))
    typer.echo(f"faults: {out}")
    if failed := [name for name, code in zip(names, codes, strict=True) if code]:
        raise SystemExit(f"failed: {', '.join(failed)}; their rows are those of before")
    return None


def _count(name: str, seed: int, share: float, folder: Path, out: Path) -> None:
    from eadpr.runtime.files import write_json
    from eadpr.studies.provenance import commit

    typer.echo(f"{name} …", err=True)
    revision, began = commit(), time.monotonic()
    results = importlib.import_module(f"benchmarks.faults.{name}").run(seed, folder, share)
    about = {"commit": revision, "seed": seed, "share": share, "minutes": (time.monotonic() - began) / 60}
    counts = [count._replace(notes=tuple(note.replace(f"{folder}/", "") for note in count.notes)) for count in results]
    write_json(out, about | {"counts": [count._asdict() for count in counts]})


def page(records: dict[str, Any]) -> str:
    """Return the page of the counts at hand, by module."""
    rows, remaining, runs = [], [], []
    for name, record in records.items():
        counts = [Count(**count) for count in record["counts"]]
        rows += [f"| {name} | {count.kind} | {' | '.join(f'{n:,}' for n in count[1:-1])} |" for count in counts]
        notes = [f"* *{count.kind}*: {' '.join(note.split())}" for count in counts for note in count.notes]
        remaining += [textwrap.fill(note, 120, subsequent_indent="  ", break_on_hyphens=False) for note in notes]
        part = "" if record["share"] == 1 else f", {record['share']:.0%} of the full numbers"
        runs.append(f"{name}: commit {record['commit']}, seed {record['seed']}{part}, {record['minutes']:.0f} min.")
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    parts = {"runs": "\n".join(f"* {run}" for run in runs), "rows": "\n".join(rows)}
    return template.format(**parts, remaining="\n".join(remaining) or "Nothing.")


if __name__ == "__main__":
    typer.run(main)
