"""What a table was made from stands in its metadata: the tables that its stage was given, by the hash of their footers.

So a table that another run left beside this run's is refused where the two are read. A Parquet footer has bounds and
sizes of every column of every row group, and the hashes of what the table itself was made from.

What often stays the same when what it is made of changes has to keep its bytes then, so that nothing is trained again
for it. So rankings are not noted, which positives hardly depend on, and a stage may note nothing (`examples`).
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

NOTED = b"made_from"
UNNOTED = "rankings/"
END = 8  # bytes behind a footer: its length, and PAR1


class Lineage:
    """Of one stage: its collection's folder, and what it is given of that, files and folders; whether it notes them."""

    def __init__(self, home: Path, given: Iterable[Path], *, noted: bool = True) -> None:
        self._home = home
        self._given = [path.absolute() for path in given if path.absolute().is_relative_to(home)]
        self._noted = noted

    def note(self) -> dict[bytes, bytes]:
        """The metadata of the tables that the stage writes; empty where there is nothing to note."""
        noted = {name: _hash(path) for name, path in self._tables() if self._noted and not name.startswith(UNNOTED)}
        return {NOTED: json.dumps(noted, sort_keys=True).encode()} if noted else {}

    def other(self, path: Path, metadata: Mapping[bytes, bytes]) -> Path | None:
        """The first table of those given that is not the one which `path`, given too, was made from."""
        if not any(path.absolute().is_relative_to(given) for given in self._given):
            return None
        now = dict(self._tables())
        noted = json.loads(metadata.get(NOTED, b"{}"))
        return next((now[name] for name in noted if name in now and _hash(now[name]) != noted[name]), None)

    def _tables(self) -> Iterator[tuple[str, Path]]:
        for given in self._given:
            for path in sorted(given.rglob("*.parquet")) if given.is_dir() else [given]:
                if path.suffix == ".parquet" and path.is_file():
                    yield path.relative_to(self._home).as_posix(), path


@cache
def _hash(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - END))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - END - length))
        return hashlib.sha256(file.read()).hexdigest()[:16]


NOWHERE = Lineage(Path(), [])
of_process = NOWHERE


@contextmanager
def of_stage(config: Path, given: Iterable[Path | None], *, noted: bool = True) -> Iterator[None]:
    """In the block the process is the stage whose config file lies in its collection's folder configs/."""
    global of_process
    homes = [folder.parent for folder in config.absolute().parents if folder.name == "configs"]
    of_process = Lineage(homes[0], filter(None, given), noted=noted) if homes else NOWHERE
    try:
        yield
    finally:
        of_process = NOWHERE
        _hash.cache_clear()
