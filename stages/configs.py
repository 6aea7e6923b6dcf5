"""Validate params.yaml and write each stage the settings it uses, so that DVC reruns only what a change concerns."""

from __future__ import annotations

from pathlib import Path

import typer

from stages import run


def main(params: Path = typer.Option(Path("params.yaml"), help="The parameter file.")) -> None:
    from eadpr.files import new_folder, write_json
    from eadpr.params import configs, load

    values = load(params)
    files = configs(values)
    with new_folder(Path("data") / values["collection"] / "configs") as folder:
        for name, sections in files.items():
            write_json(folder / name, sections)
    typer.echo(f"configs: {len(files)} files for {values['collection']} ({', '.join(values['active'])})")


if __name__ == "__main__":
    run(main)
