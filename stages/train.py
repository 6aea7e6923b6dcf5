"""Train an arm's dual encoder."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections loss, train, encoder and machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet and questions.parquet."),
    examples: Path = typer.Option(..., help="Folder of examples.parquet and distractors.parquet."),
    init: Path = typer.Option(..., help="Folder of the encoders to start from."),
    out: Path = typer.Option(..., help="Folder of the trained encoders."),
    log: Path = typer.Option(..., help="Folder of the log in DVCLive's layout."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.training.config import EncoderSettings, Loss, Train
    from eadpr.training.launch import launch

    sections = read(config, loss=Loss, train=Train, encoder=EncoderSettings, machine=Machine)
    launch("stages.train")
    settle(sections[-1], spinning=False)
    from eadpr.training import processes
    from eadpr.training.arm import Inputs, Settings, train_arm

    inputs = Inputs(records=records, examples=examples, init=init)
    with processes.group():
        steps = train_arm(inputs, out, log, Settings(*sections))
        first = processes.first()
    if not first:
        raise typer.Exit  # one process says and records what was done
    typer.echo(f"train: {steps:,} steps")


if __name__ == "__main__":
    run(main)
