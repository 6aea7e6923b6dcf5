"""A collection's files brought together: downloads checked and pinned, local files checked where they are."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from eadpr.corpus.download import Pin, download
from eadpr.corpus.sources import File, Source
from eadpr.files import new_folder, sha256, write_json

MANIFEST = "files.json"
PINS = "pins.json"


def fetch(source: Source, *, sources: Path, out: Path) -> list[str]:
    """Write `out`/: the downloaded files and files.json (name -> relative file). Local files stay where they are.

    A download without a hash in params.yaml must be what `sources`/pins.json says of its address; a new one is entered
    there, and the return value names those. Everything is checked before `out` appears.
    """
    pins = read_pins(sources / PINS)
    for file in source.files:
        if file.path is not None:
            _check_local(file, sources)
    new: dict[str, Pin] = {}
    names = []
    with new_folder(out) as folder:
        for file in source.files:
            if file.url is None:
                continue
            found = _bring(file, pins.get(file.url), sources, folder / file.name)
            if file.sha256 is None and file.url not in pins:
                new[file.url] = found
                names.append(file.name)
        write_json(folder / MANIFEST, {file.name: file.name for file in source.files if file.url is not None})
    if new:
        write_json(sources / PINS, {url: pin._asdict() for url, pin in (pins | new).items()})
    return names


def read_pins(path: Path) -> dict[str, Pin]:
    """By URL. Raises ValueError for a file that is not as `fetch` writes it."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {url: Pin(sha256=entry["sha256"], size=entry["size"]) for url, entry in found.items()}
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected an object of url -> {{sha256, size}} ({error!r}); restore it from git"
        ) from None


def _bring(file: File, pinned: Pin | None, sources: Path, to: Path) -> Pin:
    pinned = pinned or Pin(None, None)
    wanted = Pin(file.sha256 or pinned.sha256, pinned.size if file.size is None else file.size)
    hint = f"get the file another way, put it at {sources / file.name} and write `path: {file.name}` in place of `url`"
    kept, found = download(file.url, wanted, local_hint=hint)
    try:
        os.link(kept, to)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(kept, to)
    return found


def _check_local(file: File, sources: Path) -> None:
    path = sources / file.path
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; `python -m stages.add` brings files in, or put it there")
    if file.size is not None and path.stat().st_size != file.size:
        raise ValueError(
            f"{path}: expected {file.size:,} bytes, found {path.stat().st_size:,}; it is another file or incomplete"
        )
    if file.sha256 is not None and (found := sha256(path)) != file.sha256:
        raise ValueError(f"{path}: expected sha256 {file.sha256}, found {found}; it is another file")
