"""Entries of the DVC stages. Only `run` lives here, so that a stage's `--help` imports little more than Typer."""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
from collections.abc import Callable

USER_ERRORS = (ValueError, OSError, MemoryError)
# New objects after which Python looks for cycles among them. Records and libraries are many objects, few in cycles;
# after every 700, as is usual, that took a sixth of the time of `distractors` and about a tenth of imports.
COLLECTED_AFTER = 50_000


def run(main: Callable[..., None]) -> None:
    """Run a stage's command; an error a user can mend ends as a line and exit code 1, any other with its traceback."""
    import typer

    gc.set_threshold(COLLECTED_AFTER)
    # Rich, which Typer prints help with unless told, takes longer to import than all else that a stage's help needs.
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(_recorded(main))
    try:
        app()
    except USER_ERRORS as error:
        if "EADPR_TRACEBACK" in os.environ:
            raise
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(1)


def _recorded(main: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(main)
    def recording(*args: object, **options: object) -> None:
        started = time.monotonic()
        main(*args, **options)
        from eadpr import runs

        name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
        runs.record([name, *sys.argv[1:]], time.monotonic() - started)

    return recording
