"""Find the best paths of two passages for the questions trained on and evaluated on."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: sections beam, sets and machine."),
    records: Path = typer.Option(..., help="Folder of passages, questions and question sets."),
    model: Path = typer.Option(..., help="Folder of encoders trained for two hops."),
    vectors: Path = typer.Option(..., help="Folder of the passages' vectors, made with the same model."),
    out: Path = typer.Option(..., help="Folder to write the paths to, train.parquet and evaluate.parquet."),
    ranking: Path = typer.Option(..., help="Folder to write the passages of the paths to, as a ranking."),
) -> None:
    from eadpr.config import Sets, read
    from eadpr.machine import Machine, settle
    from eadpr.multihop.config import Beam

    beam, sets, machine = read(config, beam=Beam, sets=Sets, machine=Machine)
    settle(machine)
    from eadpr.multihop.retrieve import retrieve_paths

    count = retrieve_paths(records, model, vectors, out, ranking, beam=beam, sets=sets)
    typer.echo(f"retrieve_multihop: paths for {count:,} questions")


if __name__ == "__main__":
    run(main)
