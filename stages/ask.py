"""Ask an arm a question: python -m stages.ask "Where was Ada born?" --arm eadpr

A command for users, not a DVC stage; it reads what `dvc repro` made.
"""

from __future__ import annotations

from pathlib import Path

import typer

from eadpr.commands import command


@command
def main(
    question: str = typer.Argument(None, help="Leave it out with --interactive."),
    arm: str = typer.Option("eadpr", help="The active arm that finds the passages."),
    top: int = typer.Option(5, min=1, help="Passages read and shown."),
    interactive: bool = typer.Option(False, "--interactive", help="Answer each line of the standard input."),
    as_json: bool = typer.Option(False, "--json", help="A JSON object per question, on a line."),
    collection: str = typer.Option(None, help="By default that of params.yaml."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
) -> None:
    import json
    import sys

    from eadpr.machine import settle
    from eadpr.params import load
    from stages.evidence import main as evidence_stage

    if interactive == (question is not None):
        raise ValueError("give either a question or --interactive, which reads one per line")
    made = Path("data") / (collection or load(params)["collection"])
    built = sorted(path.name for path in (made / "vectors").glob("[!.]*"))
    if arm not in built:
        has = ", ".join(built) or "none"
        raise ValueError(f"--arm {arm!r}: {made} has no vectors of it (it has those of {has}); run `dvc repro`")
    evidence, _, _, machine = evidence_stage.read(made / "configs" / "evidence.json")
    settle(machine)
    from eadpr.asking import ask

    asked_of = ask.loaded(made, arm, evidence, machine)
    for line in map(str.strip, sys.stdin) if interactive else [question]:
        if line or not interactive:
            asked = asked_of(line, top=top)
            typer.echo(json.dumps(ask.as_json(asked), ensure_ascii=False) if as_json else ask.shown(asked))
            sys.stdout.flush()
