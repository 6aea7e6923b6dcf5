"""Train the encoders of two-hop retrieval on an arm's examples."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections loss, train, encoder, two_hop and machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet and questions.parquet."),
    examples: Path = typer.Option(..., help="Folder of examples.parquet and distractors.parquet."),
    init: Path = typer.Option(..., help="Folder of the encoders to start from."),
    out: Path = typer.Option(..., help="Folder of the trained encoders."),
    log: Path = typer.Option(..., help="Folder of the log in DVCLive's layout."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.multihop.config import TwoHop
    from eadpr.training.config import EncoderSettings, Loss, Train
    from eadpr.training.launch import launch

    sections = read(config, loss=Loss, train=Train, encoder=EncoderSettings, two_hop=TwoHop, machine=Machine)
    launch("stages.train_multihop")
    settle(sections[-1], spinning=False)
    from eadpr.multihop.train import Inputs, Settings, train_multihop
    from eadpr.training import processes

    inputs = Inputs(records=records, examples=examples, init=init)
    with processes.group():
        steps = train_multihop(inputs, out, log, Settings(*sections))
        first = processes.first()
    if not first:
        raise typer.Exit  # one process says and records what was done
    typer.echo(f"train_multihop: {steps:,} steps")


if __name__ == "__main__":
    run(main)
