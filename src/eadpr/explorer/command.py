"""The command `eadpr demo`."""

import json
import webbrowser
import zlib
from pathlib import Path

import typer

from eadpr.explorer.page import make_page

DATA = Path(__file__).with_name("demo.zlib")  # python -m docs.demo writes it


def main(
    out: Path = typer.Option(Path("eadpr-demo.html"), help="Where the page is written."),
    browse: bool = typer.Option(True, help="Open it in a browser."),
) -> str:
    """Open the page of a finished run, with some of its questions: eadpr demo."""
    columns, details, texts = json.loads(zlib.decompress(DATA.read_bytes()))
    out.write_bytes(make_page(columns["collection"], columns["about"]["date"], columns, details, texts))
    if browse:
        webbrowser.open(out.absolute().as_uri())
    pages = ", ".join(map(str, sorted(Path("reports").glob("*.html"))))
    hint = f"your own pages: {pages}" if pages else "`make repro` makes the page of all in about ten minutes"
    return f"demo: {out}, {len(details)} questions; {hint}"
