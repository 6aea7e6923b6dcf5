"""Entries of the DVC stages. Only `run` lives here, so that a stage's `--help` imports little more than Typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

USER_ERRORS = (ValueError, OSError)


def run(main: Callable[..., None]) -> None:
    """Run a stage's command; an error a user can mend ends as a line and exit code 1, any other with its traceback."""
    import typer

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    try:
        app()
    except USER_ERRORS as error:
        if "EADPR_TRACEBACK" in os.environ:
            raise
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(1)
