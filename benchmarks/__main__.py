"""Run the benchmarks, each in a process of its own, and write their table: `python -m benchmarks`, `make bench`."""

import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import typer

from benchmarks import NAMES

DOCUMENT = Path("docs/benchmarks.md")
BEGIN, END = "<!-- measured: make bench -->\n", "<!-- /measured -->\n"
HEADER = f"""# Benchmarks

What `make bench` measured: this product and what people would use instead, on the same data, weights and threads.
Each comparison first checks that both computed the same thing, then times them in turns; a ratio is the median of the
repeats, with the least and the highest. One of them alone: `python -m benchmarks training`.

{BEGIN}{END}"""
LIBRARIES = ("torch", "transformers", "sentence-transformers", "faiss-cpu", "pyserini", "dvc")


def main(
    names: list[str] = typer.Argument(None, help="Modules of benchmarks/; all by default."),
    quick: bool = typer.Option(False, help="Toy sizes, which show that all works and say nothing about speed."),
    repeats: int = typer.Option(5, min=1, help="Timed pairs of runs per comparison."),
    out: Path = typer.Option(DOCUMENT, help="The document whose table is replaced."),
    rows: Path = typer.Option(None, help="Measure one benchmark in this process and write its rows here as JSON."),
) -> None:
    names = names or list(NAMES)
    if unknown := set(names) - set(NAMES):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: known are {', '.join(NAMES)}")
    if rows is not None:
        _measure(names[0], rows, quick=quick, repeats=repeats)
        return
    from benchmarks.runner import Row, table
    from eadpr.runtime.files import write_text

    results, failed = [], []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            typer.echo(f"{name} …", err=True)
            path = Path(folder) / f"{name}.json"
            options = ["--rows", str(path), "--repeats", str(repeats), *["--quick"] * quick]
            done = subprocess.run([sys.executable, "-m", "benchmarks", name, *options], check=False)
            if done.returncode:
                failed.append(name)
            else:
                results += [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    text = table(results)
    typer.echo(text)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; the document was not written")
    if names == list(NAMES) and not quick:
        old = out.read_text(encoding="utf-8") if out.exists() else HEADER
        about = f"{machine()}; {repeats} repeats; {(time.monotonic() - began) / 60:.0f} minutes in all.\n"
        write_text(out, rewritten(old, f"{about}\n{text}"))


def _measure(name: str, rows: Path, *, quick: bool, repeats: int) -> None:
    from benchmarks.data import settle

    settle()
    from benchmarks.runner import run
    from eadpr.runtime.files import write_json

    with tempfile.TemporaryDirectory() as folder:
        write_json(rows, [row._asdict() for row in run(name, Path(folder), quick=quick, repeats=repeats)])


def machine(libraries: Sequence[str] = LIBRARIES) -> str:
    from importlib.metadata import version

    from benchmarks.data import threads

    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    name = models[0].partition(":")[2].strip() if models else platform.processor()
    versions = ", ".join(f"{library} {version(library)}" for library in libraries)
    return f"{name}, {threads()} threads; Python {platform.python_version()}, {versions}"


def rewritten(document: str, text: str) -> str:
    head, rest = document.split(BEGIN)
    return head + BEGIN + text + END + rest.split(END)[1]


if __name__ == "__main__":
    typer.run(main)
