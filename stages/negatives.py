"""Mine an arm's hard negatives from a ranking, or draw them from the corpus."""

from pathlib import Path

import typer

from stages import run


def main(
    config: Path = typer.Option(..., help="Settings: section negatives."),
    records: Path = typer.Option(..., help="Folder of passages and questions."),
    positives: Path = typer.Option(..., help="Folder of positives.parquet and folds.parquet."),
    ranking: Path = typer.Option(..., help="Folder of the ranking to mine; its name is the negatives' source."),
    out: Path = typer.Option(..., help="Folder to write negatives.parquet and report.json to."),
) -> None:
    from eadpr.config import read
    from eadpr.supervision.negatives import Negatives, mine

    (negatives,) = read(config, negatives=Negatives)
    count = mine(records, positives, ranking, out, negatives=negatives)
    typer.echo(f"negatives: {count:,} from {ranking.name if negatives.kind == 'ranked' else negatives.kind}")


if __name__ == "__main__":
    run(main)
