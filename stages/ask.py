"""Ask an arm a question: python -m stages.ask "Where was Ada born?" --arm eadpr

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import typer

from eadpr.settings.command import command


def _serve(collection: str, load_arms: Callable[[], dict[str, Callable]], top: int, port: int, browse: bool) -> None:
    import webbrowser

    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise ValueError("--serve needs Starlette and uvicorn; install requirements-serve.txt, or 'eadpr[serve]'")
    from eadpr.asking import serve

    with serve.listening(port) as listener:
        port = listener.getsockname()[1]
        app = serve.application(collection, load_arms(), top=top, port=port)
        address = f"http://{serve.HOST}:{port}/"
        typer.echo(f"{address} answers questions about {collection} until Ctrl-C")
        if browse:
            webbrowser.open(address)
        serve.server(app).run(sockets=[listener])


def _lines() -> Iterator[str]:
    """The lines of the standard input that hold anything; at its end exit 1 if any was not UTF-8, each of which is
    named and passed over."""
    import sys

    refused = 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            if said := line.decode().strip():
                yield said
        except UnicodeDecodeError:
            typer.echo(f"error: line {number} of the standard input is not UTF-8; write it so", err=True)
            refused += 1
    if refused:
        raise typer.Exit(1)


@command
def main(
    question: str = typer.Argument(None, help="Leave it out with --interactive and --serve."),
    arm: list[str] = typer.Option(["eadpr"], help="The active arm that finds the passages; two of them with --serve."),
    top: int = typer.Option(5, min=1, help="Passages read and shown."),
    interactive: bool = typer.Option(False, "--interactive", help="Answer each line of the standard input."),
    serve: bool = typer.Option(False, "--serve", help="Answer on a page of this machine."),
    port: int = typer.Option(8753, min=0, max=65_535, help="Of the page; 0 is any that is free."),
    browse: bool = typer.Option(False, "--open", help="Open the page in the browser."),
    as_json: bool = typer.Option(False, "--json", help="A JSON object per question, on a line."),
    collection: str = typer.Option(None, help="By default that of params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> None:
    import sys

    from eadpr.runtime.machine import settle
    from eadpr.settings.resolve import load
    from stages.evidence import main as evidence_stage

    if (question is not None) + interactive + serve != 1:
        raise ValueError(
            "give either a question or --interactive, which reads one per line, or --serve, a page for them"
        )
    if (as_json and serve) or (browse and not serve):
        raise ValueError("--open goes with --serve, --json without")
    if len(arm) != len(set(arm)) or len(arm) > 1 + serve:
        raise ValueError(f"--arm {' --arm '.join(arm)}: give one arm, or two different ones with --serve")
    made = Path("data") / (collection or load(params)["collection"])
    built = sorted(path.name for path in (made / "vectors").glob("[!.]*"))
    for one in arm:
        if one not in built:
            has = ", ".join(built) or "none"
            raise ValueError(f"--arm {one!r}: {made} has no vectors of it (it has those of {has}); run `dvc repro`")
    evidence, _, _, machine = evidence_stage.read(made / "configs" / "evidence.json")
    settle(machine)
    from eadpr.asking import ask

    load_arms = partial(ask.loaded, made, arm, evidence, machine)
    if serve:
        return _serve(made.name, load_arms, top, port, browse)
    asked_of = load_arms()[arm[0]]
    for line in _lines() if interactive else [question]:
        asked = asked_of(line, top=top)
        typer.echo(ask.json_line(asked) if as_json else ask.shown(asked))
        sys.stdout.flush()
    return None
