"""A collection's files brought together: downloads checked and pinned, local files checked where they are.

A download is resumed where it was cut, tried again with growing pauses, checked, and kept in the cache.

The finished file stays in the cache (a hard link to it goes to DVC), because DVC empties the stage's folder before
every run and a collection that gains a small file should not fetch 13 GB again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import requests
import urllib3

from eadpr import cache
from eadpr.corpus.sources import File, Source
from eadpr.files import discard, new_folder, sha256, write_json
from eadpr.progress import progress

MANIFEST = "files.json"
PINS = "pins.json"
CHUNK = 1 << 20  # bytes
FAILURES = 6  # in a row, none of which got any further than the ones before
PAUSE = 1.0  # seconds before the second try; doubled every time
TIMEOUT = (30.0, 60.0)  # seconds to connect, and without a byte
AGAIN = (408, 425, 429, 500, 502, 503, 504)  # states of HTTP that pass


class Pin(NamedTuple):
    """What a file must be; None where it is not known."""

    sha256: str | None
    size: int | None


class Cut(Exception):
    """A try that ended early and may be made again."""


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


def download(url: str, pin: Pin, *, local_hint: str, sleep: Callable[[float], None] = time.sleep) -> tuple[Path, Pin]:
    """The file's place in the cache, and what it is.

    Raises ValueError where it is not what `pin` says, OSError where it cannot be had or stored; what was fetched so far
    is kept for the next call, unless it is wrong.
    """
    with cache.workspace("downloads", cache.fingerprint(url)) as folder:
        complete = folder / "complete"
        if complete.exists():
            found = _described_by(complete)
            if _matches(found, pin):
                return complete, found
            discard(complete)  # of a time when another pin was asked for
        partial = folder / "partial"
        _fetch(url, partial, pin, local_hint=local_hint, sleep=sleep)
        found = _described_by(partial)
        if not _matches(found, pin):
            discard(partial)
            raise ValueError(
                f"{url}: expected {_shown(pin)}, got {_shown(found)}; nothing was kept."
                " If the file was changed on purpose, mend sha256 and size in the collection's file (or pins.json)"
            )
        partial.replace(complete)
        return complete, found


def _described_by(path: Path) -> Pin:
    return Pin(sha256(path), path.stat().st_size)


def _matches(found: Pin, pin: Pin) -> bool:
    return pin.sha256 in (None, found.sha256) and pin.size in (None, found.size)


def _shown(pin: Pin) -> str:
    size = "any size" if pin.size is None else f"{pin.size:,} bytes"
    return f"sha256 {pin.sha256 or '(none)'} and {size}"


def _fetch(url: str, partial: Path, pin: Pin, *, local_hint: str, sleep: Callable[[float], None]) -> None:
    failures, furthest = 0, _size(partial)
    with progress(f"download {url}", pin.size, "bytes", done=furthest) as advance:
        shown = furthest

        def reach(at: int) -> None:
            nonlocal shown
            advance(at - shown)
            shown = at

        while pin.size is None or _size(partial) != pin.size:
            try:
                _attempt(url, partial, pin, reach, local_hint=local_hint)
                return
            except (Cut, requests.RequestException, urllib3.exceptions.HTTPError) as error:
                failures = 1 if _size(partial) > furthest else failures + 1
                furthest = max(_size(partial), furthest)
                if failures == FAILURES:
                    said = f"{url} cannot be downloaded, stopped after {_size(partial):,} bytes ({error})"
                    raise OSError(f"{said}; try again, or {local_hint}") from error
                sleep(PAUSE * 2 ** (failures - 1))


def _attempt(url: str, partial: Path, pin: Pin, reach: Callable[[int], None], *, local_hint: str) -> None:
    """One request. Raises Cut where the answer ended early, OSError where trying again is no use."""
    state = partial.with_name("state.json")
    validator = json.loads(state.read_text()).get("validator") if state.exists() else None
    have = _size(partial)
    if have and validator is None and pin.sha256 is None:
        have = 0  # nothing could tell that the rest belongs to another version of the file
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code in AGAIN:
            raise Cut(f"HTTP {response.status_code}")
        if response.status_code == 416:
            discard(partial)
            raise Cut("the server has no such range; starting from the beginning")
        if response.status_code not in (200, 206):
            raise OSError(
                f"{url} answers HTTP {response.status_code} {response.reason}; check the address, or {local_hint}"
            )
        if response.status_code == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            discard(partial)
            raise Cut("the server sent another range than the one asked for")
        have = have if response.status_code == 206 else 0
        write_json(state, {"validator": _validator(response)})
        _store(response, partial, have, reach)
        length = response.headers.get("Content-Length")
    whole = pin.size if length is None else have + int(length)
    if whole is not None and _size(partial) < whole:
        raise Cut(f"the connection was cut after {_size(partial):,} of {whole:,} bytes")


def _validator(response: requests.Response) -> str | None:
    """What makes a later range request fall back to the whole file if the file has changed; weak tags do not."""
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _store(response: requests.Response, partial: Path, have: int, reach: Callable[[int], None]) -> None:
    with partial.open("r+b" if have else "wb") as file:
        file.seek(have)
        # As sent: what a server calls a content encoding is how such files are stored.
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            try:
                file.write(chunk)
                file.flush()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                raise _full(partial, file.tell(), error) from error
            reach(file.tell())


def _full(partial: Path, at: int, error: OSError) -> OSError:
    return OSError(
        error.errno,
        f"no space left after about {at:,} bytes; free some, or set EADPR_CACHE to a larger disk, and run again: the"
        " download goes on where it stopped",
        str(partial),
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
