"""The command line of users: `eadpr NAME …`, with the shell's completion."""

import pkgutil
import sys
from collections.abc import Callable

import eadpr
from eadpr.settings import user_command

# In the package, so that the wheel has them; the stages of the pipeline need the repository.
GROUPS = {
    "Your passages and questions": {
        "add": "eadpr.settings.add_command:main",
        "ask-passages": "eadpr.writers.command:main",
        "describe": "eadpr.studies.describe:main",
    },
    "Train and measure": {
        "demo": "eadpr.explorer.command:main",
        "repro": "eadpr.studies.repro:main",
        "status": "eadpr.studies.status:main",
        "study": "eadpr.studies.command:main",
        "export": "eadpr.evaluation.command:main",
    },
    "Use a model": {
        "search": "eadpr.settings.search_command:main",
        "publish": "eadpr.publishing.command:publish",
        "probe-model": "eadpr.library.command:main",
        "convert": "eadpr.publishing.command:convert_checkpoint",
    },
}
COMMANDS = {name: function for group in GROUPS.values() for name, function in group.items()}
LIGHT = ("demo", "probe-model")  # need [awareness] alone


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else None
    try:
        _run(name)
    except ModuleNotFoundError as error:
        sys.exit(f"error: {_advice(error, name)}")


def _advice(error: ModuleNotFoundError, name: str | None) -> str:
    missing = (error.name or "").partition(".")[0]
    if missing in ("", "eadpr", "stages"):
        raise error
    extra = "awareness" if name in LIGHT else "pipeline"
    return f"{missing} is not installed; it comes with pip install 'eadpr[{extra}]'"


def _help(name: str) -> tuple[Callable, str | None]:
    """A command for the list of all, and what it says there where a library of it is missing."""
    try:
        return pkgutil.resolve_name(COMMANDS[name]), None
    except ModuleNotFoundError as error:
        return (lambda: None), _advice(error, name).replace("[", r"\[")  # else Rich takes [pipeline] for a style


def _run(name: str | None) -> None:
    if name in COMMANDS:
        sys.argv[:2] = [f"eadpr {name}"]  # else `study` would take its own name for an argument
        user_command.run(pkgutil.resolve_name(COMMANDS[name]))
        return
    import typer

    def options(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
        if version:
            typer.echo(eadpr.__version__)

    group = typer.Typer(pretty_exceptions_enable=False, no_args_is_help=True)
    group.callback(invoke_without_command=True)(options)
    for panel, functions in GROUPS.items():
        for name in functions:
            function, advice = _help(name)
            group.command(name, rich_help_panel=panel, help=advice)(function)
    group(prog_name="eadpr")


if __name__ == "__main__":
    main()
