"""Stages of DVC, as the modules of stages/ define them. A stage declares its settings and paths once:

    @stage("{arm}/train.json", init="C/models/{init}", out="C/models/{arm}")
    def main(loss, train, machine, *, records, init, out): ...

    python -m stages.train eadpr --init base

The parameters before the star are the sections of its config file in the collection's configs/, those behind it its
paths, as patterns such as `C/models/{arm}`: C stands for data/<collection>, a field for a name. Names that `out` or the
config file needs are arguments of the command line; others are options. Each path can be given: --out PATH. If a
section is `machine`, the process is settled (`machine.settle`) before `main`, in which alone torch may be imported.
"""

from __future__ import annotations

import argparse
import gc
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.runtime.terminal import printable

USER_ERRORS = (ValueError, OSError, MemoryError)
# New objects after which Python looks for cycles among them. Records and libraries are many objects, few in cycles;
# after every 700, as is usual, that took a sixth of the time of `distractors` and about a tenth of imports.
COLLECTED_AFTER = 50_000
LONGEST = 600  # characters of a line of an error
# By name, so that a further section reruns nothing: the function that takes a section imports its class's module.
SECTIONS = "eadpr.settings.names:GIVEN"
SETTLE = "eadpr.runtime.machine:settle"
PARAMS = Path("params.yaml")
PATHS = ("/", "./", "data/")  # what an option that may be a name begins with if it is a path
# Paths of every stage that are not C/<name>; stages add those with a name in them, and where they write (`stage`).
FIXED = {
    "accuracy": "C/evidence_accuracy.json",
    "evidence": "C/evidence.parquet",
    "measured": "reports/{collection}",
    "sources": "data/sources/{collection}",
}


class Stage(NamedTuple):
    """A DVC stage. There is a config file for each name that `config` has a field for: {arm}, {base}, ..."""

    main: Callable[..., str]
    config: str
    patterns: dict[str, str]  # of paths

    def sections(self) -> list[str]:
        code = self.main.__code__
        return list(code.co_varnames[: code.co_argcount])

    def paths(self) -> dict[str, str]:
        """Return the patterns of the config file and of all paths by name."""
        code, patterns = self.main.__code__, FIXED | self.patterns
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        return {"config": f"C/configs/{self.config}"} | {name: patterns.get(name, f"C/{name}") for name in names}

    def arguments(self) -> list[str]:
        """Return the names that the command line takes in order: first for the config file, then for the output."""
        return list(dict.fromkeys(fields(self.config) + fields(self.paths().get("out", ""))))

    def options(self) -> dict[str, str]:
        """Return the options of the command line by name, each with its default, which is empty for a name."""
        paths = self.paths()
        names = [name for pattern in paths.values() for name in fields(pattern) if name not in self.arguments()]
        return dict.fromkeys(["collection", *names], "") | paths

    def locate(self, arguments: Mapping[str, str | None], options: Mapping[str, str | None]) -> dict[str, Path | None]:
        """Return all paths. An option is a path if it begins as PATHS do or no name belongs there, else a name."""
        names = {name: value for name, value in arguments.items() if value is not None}
        patterns, located = self.paths(), {}
        for name, value in options.items():
            if value is None:
                continue
            if name in patterns and (value.startswith(PATHS) or name not in fields(patterns[name])):
                located[name] = Path(value)
            else:
                names[name] = value
        for name in patterns.keys() - located.keys():
            missing = [field for field in fields(patterns[name]) if field not in names]
            if missing and name not in (self.main.__kwdefaults__ or {}):
                needed = " ".join(field.upper() if field in arguments else f"--{field}" for field in missing)
                raise ValueError(f"--{name} is {patterns[name]}: give {needed}, or a path that begins with ./ or /")
            collection = names.get("collection") or active_collection()
            located[name] = None if missing else locate(patterns[name], names | {"collection": collection})
        return {name: located[name] for name in patterns}

    def run(self, paths: dict[str, Path | None]) -> str:
        """Read the settings, settle the process and do the work with these paths."""
        from eadpr.runtime.section import read

        kinds, names = pkgutil.resolve_name(SECTIONS), self.sections()
        sections = read(paths["config"], **{name: pkgutil.resolve_name(kinds[name]) for name in names})
        if "machine" in names:
            pkgutil.resolve_name(SETTLE)(sections[names.index("machine")])
        return self.main(*sections, **{name: path for name, path in paths.items() if name != "config"})

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(description=self.main.__globals__["__doc__"], allow_abbrev=False)
        for name in self.arguments():
            parser.add_argument(f"{name}_name", nargs="?", metavar=name.upper())
        for name, pattern in self.options().items():
            kind = "PATH" if pattern else "NAME"
            parser.add_argument(f"--{name}", metavar=kind, help=pattern and f"by default {pattern}")
        return parser

    def run_command(self, words: Sequence[str]) -> None:
        """Run the stage with the words of a command line; print what it did."""
        values = vars(self.parser().parse_args(words))
        names = {name: values[f"{name}_name"] for name in self.arguments()}
        text = self.run(self.locate(names, {name: values[name] for name in self.options()}))
        # The first of the processes that torchrun started; a rank alone is left over from a cluster's job.
        if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ["RANK"] == "0":
            print(printable(text.removesuffix("\n")))


def stage(config: str | None = None, **patterns: str) -> Callable[[Callable[..., str]], Stage]:
    """Declare a DVC stage; `config` is <its module>.json by default, `patterns` are of paths but FIXED and C/<name>.

    The decorated function stands last in its module: if that is run (python -m), the stage is run.
    """

    def declare(main: Callable[..., str]) -> Stage:
        declared_stage = Stage(main, config or f"{Path(main.__code__.co_filename).stem}.json", patterns)
        if main.__module__ == "__main__":
            guard(lambda: declared_stage.run_command(sys.argv[1:]))
        return declared_stage

    return declare


def fields(pattern: str) -> list[str]:
    """Return the names that a pattern needs, without the collection."""
    return [name for name in re.findall(r"\{(\w+)\}", pattern) if name != "collection"]


def locate(pattern: str, names: dict[str, str]) -> Path:
    """Return the path of a pattern with these names, among them the collection's."""
    return Path(re.sub("^C/", "data/{collection}/", pattern).format_map(names))


def active_collection() -> str:
    """Return the collection that params.yaml names. Only its line is read, as parsing the file takes a second."""
    match = re.search(r"(?m)^collection: *([\"']?)([a-z0-9][a-z0-9_-]*)\1 *(#.*)?$", PARAMS.read_text(encoding="utf-8"))
    if not match:
        raise ValueError(f"{PARAMS}: collection: expected a name on the line of the key; give --collection")
    return match[2]


def guard(work: Callable[[], object]) -> None:
    """Do a command's work; an error a user can mend ends as a line and exit code 1, Ctrl-C with 130, as a shell's."""
    gc.set_threshold(COLLECTED_AFTER)
    try:
        work()
    except USER_ERRORS as error:
        if "EADPR_TRACEBACK" in os.environ:
            raise
        import typer

        typer.secho(f"error: {format_error(error)}", fg="red", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def format_error(error: BaseException) -> str:
    """Format an error for the terminal: control characters escaped as in Python, long lines without their middle."""
    text = printable(str(error) or "out of memory")
    if isinstance(error, FileNotFoundError) and error.filename == str(PARAMS):
        text = f"there is no {PARAMS} here; run this in the folder of the project, a clone of eadpr's repository"
    return re.sub(rf"(?m)^(.{{{LONGEST - 203}}}).+(.{{200}})$", r"\1 … \2", text)
