"""Commands, as the modules of stages/ define them. What a stage is given stands once, in the signature of its `main`:

    @stage("{arms}/train.json")
    def main(loss, train, machine, *, records, out): ...

Before the star stand the sections of the stage's config file, which come as `--config`, behind it the paths of its
command line. `params_names` says what each name is. Where one is `machine`, the process is settled (`machine.settle`)
before `main`, in which alone torch may be imported.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import pkgutil
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import typer

USER_ERRORS = (ValueError, OSError, MemoryError)
# New objects after which Python looks for cycles among them. Records and libraries are many objects, few in cycles;
# after every 700, as is usual, that took a sixth of the time of `distractors` and about a tenth of imports.
COLLECTED_AFTER = 50_000
LONGEST = 600  # characters of a line of an error
# By name, so that they are no code of every stage: a further section or another word for a path reruns nothing. The
# module of a section's class is imported by the function that takes it.
SECTIONS = "eadpr.settings.names:GIVEN"
PATHS = "eadpr.settings.names:PATHS"
SETTLE = "eadpr.runtime.machine:settle"
ONLY_BY_NAME = inspect.Parameter.KEYWORD_ONLY


class Stage(NamedTuple):
    """`config` is the path of the config file in the collection's configs/. A field such as {arms} stands for each name
    of that kind, and there is a file for each. `settled`: whether the process is settled before `main`."""

    main: Callable[..., str]
    config: str
    settled: bool = True

    def sections(self) -> list[str]:
        """Their names. A section that has the name of a path is written with a `_` behind it in the signature."""
        return [name.rstrip("_") for name, given in self._given() if given.kind is not ONLY_BY_NAME]

    def read(self, config: Path) -> tuple:
        """The sections of a config file in the order of `main`; None where the collection needs none."""
        from eadpr.runtime.section import read

        kinds = pkgutil.resolve_name(SECTIONS)
        return read(config, **{name: pkgutil.resolve_name(kinds[name]) for name in self.sections()})

    def command(self) -> Callable[..., str]:
        """A function whose signature Typer makes a command line of."""
        import typer

        def command(config: Path, **paths: Path | None) -> str:
            sections = self.read(config)
            if self.settled and "machine" in self.sections():
                pkgutil.resolve_name(SETTLE)(sections[self.sections().index("machine")])
            return self.main(*sections, **paths)

        said = pkgutil.resolve_name(PATHS)
        options = {"config": typer.Option(..., help=f"JSON file of the sections {', '.join(self.sections())}.")}
        for name, given in self._given():
            if given.kind is ONLY_BY_NAME:
                default = ... if given.default is inspect.Parameter.empty else given.default
                options[name] = typer.Option(default, help=said[name])
        command.__signature__ = inspect.Signature(
            inspect.Parameter(name, ONLY_BY_NAME, default=option, annotation=Path) for name, option in options.items()
        )
        command.__annotations__ = dict.fromkeys(options, Path)
        command.__doc__ = self.main.__globals__["__doc__"]
        return command

    def _given(self) -> list[tuple[str, inspect.Parameter]]:
        return list(inspect.signature(self.main).parameters.items())


def stage(config: str | None = None, *, settled: bool = True) -> Callable[[Callable[..., str]], Stage]:
    """A DVC stage; `config` is <its module>.json unless given. The decorated function stands last in its module: where
    that is run (python -m) the stage is run. With `settled` false `main` settles the process itself."""

    def made(main: Callable[..., str]) -> Stage:
        of_module = Stage(main, config or f"{Path(main.__code__.co_filename).stem}.json", settled)
        if main.__module__ == "__main__":
            run(of_module.command())
        return of_module

    return made


def command(main: Callable[..., str | None]) -> Callable[..., str | None]:
    """A command for users, with Typer's parameters; it stands last in its module and is run as a `stage` is."""
    if main.__module__ == "__main__":
        main.__doc__ = main.__globals__["__doc__"]
        run(main)
    return main


def declared() -> dict[str, list[str]]:
    """The sections of each config file of the stages in stages/, by its path as `Stage.config` has it."""
    folder = importlib.import_module("stages").__path__
    found = [importlib.import_module(f"stages.{module.name}").main for module in pkgutil.iter_modules(folder)]
    return {main.config: main.sections() for main in found if isinstance(main, Stage)}


def run(main: Callable[..., str | None]) -> None:
    """Run a command; an error a user can mend ends as a line and exit code 1, any other with its traceback."""
    import typer

    gc.set_threshold(COLLECTED_AFTER)
    try:
        app(main)()
    except USER_ERRORS as error:
        if "EADPR_TRACEBACK" in os.environ:
            raise
        typer.secho(f"error: {said(error)}", fg="red", err=True)
        sys.exit(1)


def said(error: BaseException) -> str:
    """An error as it is shown: what a terminal would obey as Python writes it, and long lines without their middle."""
    shown = (c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in str(error))
    return re.sub(rf"(?m)^(.{{{LONGEST - 203}}}).+(.{{200}})$", r"\1 … \2", "".join(shown))


def app(main: Callable[..., str | None]) -> typer.Typer:
    """The Typer application of a command, which prints what it returns."""
    import typer

    # Rich, which Typer prints help with unless told, takes longer to import than all else that a stage's help needs.
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    made.command()(_recorded(main))
    return made


def _recorded(main: Callable[..., str | None]) -> Callable[..., None]:
    @functools.wraps(main)
    def recording(*args: object, **options: object) -> None:
        import typer

        started = time.monotonic()
        said = main(*args, **options)
        if os.environ.get("RANK", "0") != "0":
            return  # the first of the processes that torchrun started says and records what was done
        if said is not None:
            typer.echo(said, nl=not said.endswith("\n"))
        from eadpr.runtime import runs

        name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        runs.record([name, *sys.argv[1:]], time.monotonic() - started)

    return recording
