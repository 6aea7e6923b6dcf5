"""The command line of users: `eadpr NAME …` is `python -m stages.NAME …`, with the shell's completion."""

import importlib
import pkgutil
import sys
from collections.abc import Callable

import typer

from eadpr.settings import command as commands

OF_DVC = "configs"  # a command that only DVC calls
# The extra that installs a library; all others come with `pipeline`.
EXTRAS = {"sentence_transformers": "sentence-transformers", "onnx": "onnx", "onnxruntime": "onnx"}


def user_commands() -> dict[str, Callable[..., str | None]]:
    """Import the commands of stages/ that users call, by their name on the command line."""
    by_name = {}
    for module in pkgutil.iter_modules(importlib.import_module("stages").__path__):
        imported = importlib.import_module(f"stages.{module.name}")
        called = getattr(imported, "by_hand", imported.main)
        if not isinstance(called, commands.Stage) and module.name != OF_DVC:
            called.__doc__ = imported.__doc__
            by_name[module.name.replace("_", "-")] = called
    return by_name


def main() -> None:
    available, name = user_commands(), sys.argv[1] if len(sys.argv) > 1 else None
    if name in available:
        sys.argv[:2] = [f"eadpr {name}"]  # else `study` would take its own name for an argument
        try:
            commands.run(available[name])
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in ("", "eadpr", "stages"):
                raise
            extra = EXTRAS.get(missing, "pipeline")
            sys.exit(f"error: {missing} is not installed; it comes with pip install 'eadpr[{extra}]'")
        return
    group = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
    group.callback()(lambda: None)
    for name, called in available.items():
        group.command(name)(called)
    group(prog_name="eadpr")


if __name__ == "__main__":
    main()
