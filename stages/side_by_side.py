"""Run the pipeline as `dvc repro` does, with stages side by side, on a cluster of Ray (docs/howto/ray.md)."""

from pathlib import Path

import typer

from eadpr.settings.command import command


@command
def main(
    ray: str = typer.Option("local", envvar="EADPR_RAY", help="`local`, or the address of a cluster that runs."),
    drop_vectors: bool = typer.Option(False, "--drop-vectors", help="Delete vectors that all stages have read."),
    per_card: int = typer.Option(1, min=1, help="Stages that share a GPU; they must fit its memory together."),
) -> str:
    from eadpr.runtime import cache
    from eadpr.studies import side_by_side

    with cache.workspace("studies", cache.fingerprint(str(Path.cwd()))):
        count = side_by_side.run(ray, Path("params.yaml"), drop=drop_vectors, per_card=per_card)
    return f"{count} stages are up to date"
