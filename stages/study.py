"""Run a study of studies.yaml and write its table: python -m stages.study NAME; or --check which tables are behind."""

from __future__ import annotations

import functools
import importlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eadpr.settings.command import command

if TYPE_CHECKING:
    from eadpr.studies.provenance import Provenance
    from eadpr.studies.run import Study


def _pictures(names: list[str], of: Path, to: Path, study: str) -> str:
    """Lines that show the pictures of a report, which are copied beside the study's table. A report draws none where
    nothing was measured of what it would show."""
    from eadpr.runtime import files

    said = ""
    for name in names:
        copy, drawn = to / f"{study}-{name}.svg", of / f"{name}.svg"
        if not drawn.is_file():
            typer.echo(f"study: {drawn} was not drawn, as nothing was measured for it", err=True)
            continue
        files.write_text(copy, drawn.read_text(encoding="utf-8"))
        said += f"\n![{name}]({copy.name})\n"
    return said


def _grid(study: Study, ran: dict[str, Any], picture: Path) -> str:
    """Tables of the grid over the first question set; the heat map goes to `picture`."""
    from eadpr.runtime import files
    from eadpr.studies import trainings as describe

    collection = ran["collection"]
    question_set = ran["collections"][collection]["sets"]["evaluate"][0]
    metrics = Path("reports") / collection / "metrics"
    found = describe.grid(metrics, question_set, study.grid.cells(ran["active"]), study.grid.metrics)
    files.write_text(picture, describe.heat_maps(found))
    title = f"{study.grid.rows} and {study.grid.columns}"
    return f"\n## {question_set}: {title}\n\n{describe.grid_tables(found)}\n\n![{title}]({picture.name})\n"


def _run(changes: list[str], params: Path, folder: Path) -> dict[str, Any]:
    """Run the experiment and return its parameters."""
    from eadpr.studies.lent_params import lent
    from eadpr.studies.run import applied

    ran = applied(changes, params)
    with lent(params, changes, folder):
        code = subprocess.run(_experiment(changes), check=False).returncode
    if code:
        raise typer.Exit(code)  # dvc has said why
    return ran


def _experiment(changes: list[str]) -> list[str]:
    return ["dvc", "exp", "run", *(word for change in changes for word in ("-S", change))]


def resolved(
    name: str, collection: str | None, seeds: list[int], set_: list[str], studies: Path, params: Path
) -> tuple[Study, list[str]]:
    """The study, and the overrides that make its parameters; raises ValueError for what cannot be run."""
    from eadpr.settings.resolve import configs, load
    from eadpr.studies import trainings as describe
    from eadpr.studies.run import check_effect, expanded, outdone, overrides, read_study, seeded

    values = load(params)
    study = read_study(studies, name)
    if collection is not None:
        study = study.model_copy(update={"settings": study.settings | {"collection": collection}})
    if seeds:
        study = seeded(study, seeds)
    wanted = expanded(study, values, set_)
    found = configs(wanted)
    check_effect(set_, expanded(study, values), wanted)
    if own := outdone(study, wanted):
        said = f"{wanted['collection']} has its own {', '.join(own)}, which win over the study's"
        typer.echo(f"study: {said}", err=True)
    if study.grid:
        from eadpr.evaluation.config import Evaluate

        describe.check(study.grid.metrics, Evaluate(**found["evaluate.json"]["evaluate"]))
    return study, list(overrides(values, wanted))


def _parsed(words: Sequence[str]) -> dict[str, Any]:
    """What `main` gets from these words on the command line; raises ValueError where it takes others."""
    from typer.exceptions import TyperException
    from typer.main import get_command

    main: Callable[..., None] = importlib.import_module("stages.study").main  # in __main__ it has no name yet
    made = typer.Typer(add_completion=False)
    made.command()(functools.wraps(main)(lambda **given: given))
    try:
        return get_command(made)(list(words), standalone_mode=False)
    except TyperException as error:
        raise ValueError(error.format_message()) from error


def _behind(found: Provenance, collection: str, params: Path) -> tuple[str, list[str]]:
    """As `provenance.behind`, of what the table's own command would be run with now. Commands that only look are of the
    parameters as they are."""
    from eadpr.settings.resolve import configs, load
    from eadpr.studies import provenance
    from eadpr.studies.run import applied

    if found.command == "study":
        given = _parsed(found.words)
        names = ("name", "collection", "seeds", "set_", "studies")
        _, changes = resolved(**{name: given[name] for name in names}, params=params)
        values = applied(changes, params)
    else:
        values = load(params) | {"collection": collection}
    now = provenance.today(found.command, values, configs(values))
    default = load(params)
    locked = provenance.today(found.command, default, configs(default))
    same = [stage for stage in provenance.unmoved(found) if now.get(stage) == locked.get(stage)]
    return provenance.behind(found.stages, now, same)


def _check(out: Path, params: Path) -> bool:
    """Print a line for every table; whether all are up to date."""
    from eadpr.studies import provenance

    current = True
    if not (paths := sorted(out.glob("*/*.md"))):
        raise FileNotFoundError(f"{out} holds no tables; give the folder of studies (--out)")
    for path in paths:
        found = provenance.read(path.read_text(encoding="utf-8"))
        if found is None:
            said = "does not say what it was measured with"
        else:
            try:
                differs, recoded = _behind(found, path.parent.name, params)
            except ValueError as error:
                differs, recoded = f"its command cannot be repeated ({error})", []
            but = f", but for code that changed no byte of the default pipeline ({', '.join(recoded)})" * bool(recoded)
            said = f"behind, {differs}. {found.said}" if differs else f"up to date{but}. {found.said}"
        current &= said.startswith("up to date")
        typer.echo(f"{path}: {said}")
    return current


def _measured(
    name: str, asked: Callable[[], tuple[Study, list[str]]], params: Path, out: Path, run: Callable[..., dict[str, Any]]
) -> Path:
    """The table of a study, which is run for it."""
    from eadpr.runtime import files
    from eadpr.settings.resolve import configs
    from eadpr.studies import provenance
    from eadpr.studies import trainings as describe

    study, changes = asked()
    typer.echo(shlex.join(_experiment(changes)))
    at = provenance.commit()
    ran = run(changes, params)
    chosen = ran["collection"]
    table = (Path("reports") / chosen / "table.md").read_text(encoding="utf-8")
    pictures = [*study.pictures, *(f"robustness-{generator}" for generator in ran["robustness"]["generators"])]
    table += _pictures(pictures, Path("reports") / chosen, out / chosen, name)
    if study.grid:
        table += _grid(study, ran, out / chosen / f"{name}.svg")
    table += f"\n## What each was trained with\n\n{describe.trained_with(ran['active'], configs(ran))}\n"
    table += f"\n{describe.trainings(Path('data') / chosen, ran['active'])}\n"
    path = out / chosen / f"{name}.md"
    found = provenance.of_run("study", sys.argv[1:], at, ran)
    files.write_text(path, provenance.written(study.about, found, table))
    return path


@command
def main(
    name: str = typer.Argument(None, help="A study of studies.yaml."),
    collection: str = typer.Option(None, help="The collection; by default the study's own, else that of params.yaml."),
    seeds: list[int] = typer.Option([], "--seed", min=0, help="A seed to train with, in place of the study's."),
    set_: list[str] = typer.Option([], "--set", "-S", help="One more override, as for dvc exp run."),
    show: bool = typer.Option(False, "--show", help="Only print the command."),
    check: bool = typer.Option(False, "--check", help="Only list the tables, and which are behind code or settings."),
    strict: bool = typer.Option(False, "--strict", help="With --check: end with 1 where any is not up to date."),
    studies: Path = typer.Option(Path("studies.yaml"), help="The studies."),
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
    out: Path = typer.Option(Path("docs/studies"), help="Folder of the tables: <collection>/<study>.md."),
) -> None:
    from eadpr.runtime import cache
    from eadpr.studies.lent_params import take_back

    if check:
        if name is not None:
            raise ValueError("--check is of all tables; leave out the study's name")
        if not _check(out, params) and strict:
            raise typer.Exit(1)
        return
    if name is None:
        raise ValueError("name a study of studies.yaml, or give --check")
    asked = functools.partial(resolved, name, collection, seeds, set_, studies, params)
    if show:
        typer.echo(shlex.join(_experiment(asked()[1])))
        return
    if params.absolute() != Path("params.yaml").absolute():
        raise ValueError(f"--params {params}: is for --show and --check; a study runs with params.yaml")
    # While a study runs its settings stand in params.yaml, where the next one would take them for those to start from.
    with cache.workspace("studies", cache.fingerprint(str(Path.cwd()))) as folder:
        take_back(params, folder)
        run = functools.partial(_run, folder=folder)
        path = _measured(name, asked, params, out, run)
    typer.echo(f"study: {path}")
