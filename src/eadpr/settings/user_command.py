"""Commands for users, functions with Typer's parameters."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from eadpr.runtime.terminal import printable
from eadpr.settings.command import guard

if TYPE_CHECKING:
    import typer


def run(main: Callable[..., str | None]) -> None:
    guard(lambda: app(main)())


def app(main: Callable[..., str | None]) -> typer.Typer:
    """The Typer application of a command, which prints what it returns."""
    import typer

    @functools.wraps(main)
    def print_result(*args: object, **options: object) -> None:
        text = main(*args, **options) or ""
        if "\n|" in text and sys.stdout.isatty():  # a table of Markdown
            from rich import console, markdown

            console.Console().print(markdown.Markdown(printable(text)))
        elif text:
            typer.echo(printable(text.removesuffix("\n")))

    # Rich, which Typer prints help with unless told, takes longer to import than all else that a command's help needs.
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    application.command()(print_result)
    return application
