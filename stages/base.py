"""Make the encoder that every training starts from."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Sections base, base_files, encoder and machine."),
    records: Path = typer.Option(..., help="Folder of passages.parquet."),
    out: Path = typer.Option(..., help="Folder of the two encoders."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.model_folders import ModelFiles
    from eadpr.training.config import Base, EncoderSettings

    sections = read(config, base=Base, base_files=ModelFiles, encoder=EncoderSettings, machine=Machine)
    base, given, encoder, machine = sections
    settle(machine)
    from eadpr.training.base import make_base

    parameters = make_base(records / "passages.parquet", out, base=base, settings=encoder, given=given)
    typer.echo(f"base: an encoder of {parameters:,} parameters ({base.model})")


if __name__ == "__main__":
    run(main)
