"""Encode all passages to float16 vector shards."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections encode and machine."),
    records: Path = typer.Option(..., help="Folder of passages."),
    model: Path = typer.Option(..., help="Folder of question_encoder and passage_encoder."),
    out: Path = typer.Option(..., help="Folder to write the shards and vectors.json to."),
) -> None:
    from eadpr.config import read
    from eadpr.machine import Machine, settle
    from eadpr.search.config import Encode

    encode, machine = read(config, encode=Encode, machine=Machine)
    settle(machine)
    from eadpr.search.encode import encode as encode_passages

    count = encode_passages(records / "passages.parquet", model, out, settings=encode, hardware=machine)
    typer.echo(f"encode: {count:,} passages")


if __name__ == "__main__":
    run(main)
