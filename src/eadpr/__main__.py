"""The command line of users: `eadpr NAME …`, with the shell's completion."""

import pkgutil
import sys

from eadpr.settings import command as commands

# In the package, so that the wheel has them; the stages of the pipeline need the repository.
COMMANDS = {
    "add": "eadpr.settings.add_command:main",
    "ask-passages": "eadpr.writers.command:main",
    "convert": "eadpr.publishing.command:convert_checkpoint",
    "describe": "eadpr.studies.describe:main",
    "export": "eadpr.evaluation.command:main",
    "probe-model": "eadpr.library.command:main",
    "publish": "eadpr.publishing.command:publish",
    "repro": "eadpr.studies.repro:main",
    "search": "eadpr.library.search_command:main",
    "status": "eadpr.studies.status:main",
    "study": "eadpr.studies.command:main",
}


def main() -> None:
    try:
        _run(sys.argv[1] if len(sys.argv) > 1 else None)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "eadpr", "stages"):
            raise
        sys.exit(f"error: {missing} is not installed; it comes with pip install 'eadpr[pipeline]'")


def _run(name: str | None) -> None:
    if name in COMMANDS:
        sys.argv[:2] = [f"eadpr {name}"]  # else `study` would take its own name for an argument
        commands.run(pkgutil.resolve_name(COMMANDS[name]))
        return
    import typer

    group = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
    group.callback()(lambda: None)
    for name, function in COMMANDS.items():
        group.command(name)(pkgutil.resolve_name(function))
    group(prog_name="eadpr")


if __name__ == "__main__":
    main()
