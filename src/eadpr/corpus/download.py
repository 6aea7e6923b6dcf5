"""A collection's files brought together: downloads checked and pinned, local files checked where they are.

A download is resumed where it was cut, tried again with growing pauses, checked, and kept in the cache.

The finished file stays in the cache (a hard link to it goes to DVC), because DVC empties the stage's folder before
every run and a collection that gains a small file should not fetch 13 GB again.
"""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from pydantic import TypeAdapter, ValidationError

from eadpr.corpus.sources import LISTED, File, Source, without_password
from eadpr.runtime import cache
from eadpr.runtime.files import FULL, discard, new_folder, sha256, write_json
from eadpr.runtime.progress import progress

PINS = "pins.json"
CHUNK = 1 << 20  # bytes
FAILURES = 6  # in a row, none of which got any further than the ones before
PAUSE = 1.0  # seconds before the second try; doubled every time
TIMEOUT = (30.0, 60.0)  # seconds to connect, and without a byte
NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address
MEND = "If the file was changed on purpose, mend sha256 and size in the collection's file (or pins.json)"
AGAIN = (408, 425, 429, 500, 502, 503, 504)  # states of HTTP that pass


class Pin(NamedTuple):
    """What a file must be; None where it is not known."""

    sha256: str | None
    size: int | None


PINNED = TypeAdapter(dict[str, Pin])


class Cut(Exception):
    """A try that ended early and may be made again."""


class Refused(Cut):
    """One that would end in the same way again."""


def fetch(source: Source, *, sources: Path, out: Path) -> list[str]:
    """Write `out`/: the downloaded files and files.json (name -> relative file). Local files stay where they are.

    A download without a hash in params.yaml must be what `sources`/pins.json says of its address; a new one is entered
    there, and the return value names those. Everything is checked before `out` appears.
    """
    pins = read_pins(sources / PINS)
    for file in source.files:
        if file.path is not None:
            _check_local(file, sources / file.path)
    new: dict[str, Pin] = {}
    downloads = [file for file in source.files if file.url is not None]
    with new_folder(out) as folder:
        for file in downloads:
            found = _bring(file, pins.get(file.url, Pin(None, None)), sources, folder / file.name)
            if file.sha256 is None and file.url not in pins:
                new[file.url] = found
        write_json(folder / LISTED, {file.name: file.name for file in downloads})
    if new:
        write_json(sources / PINS, {url: pin._asdict() for url, pin in (pins | new).items()})
    return [file.name for file in downloads if file.url in new]


def read_pins(path: Path) -> dict[str, Pin]:
    """By URL. Raises ValueError for a file that is not as `fetch` writes it."""
    try:
        return PINNED.validate_json(path.read_bytes(), strict=True) if path.exists() else {}
    except ValidationError as error:
        wrong = error.errors()[0]
        said = f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}"
        raise ValueError(
            f"{path}: expected an object of url -> {{sha256, size}} ({said}); restore it from git"
        ) from None


def _bring(file: File, pinned: Pin, sources: Path, to: Path) -> Pin:
    wanted = Pin(file.sha256 or pinned.sha256, pinned.size if file.size is None else file.size)
    hint = f"get the file another way, put it at {sources / file.name} and write `path: {file.name}` in place of `url`"
    kept, found = download(file.url, wanted, local_hint=hint)
    try:
        os.link(kept, to)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(kept, to)
    return found


def _check_local(file: File, path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; `python -m stages.add` brings files in, or put it there")
    if file.size not in (None, size := path.stat().st_size):
        raise ValueError(f"{path}: expected {file.size:,} bytes, found {size:,}; it is another file or incomplete")
    if file.sha256 is not None and (found := sha256(path)) != file.sha256:
        raise ValueError(f"{path}: expected sha256 {file.sha256}, found {found}; it is another file")


def download(url: str, pin: Pin, *, local_hint: str, sleep: Callable[[float], None] = time.sleep) -> tuple[Path, Pin]:
    """The file's place in the cache, and what it is.

    Raises ValueError where it is not what `pin` says, OSError where it cannot be had or stored; what was fetched so far
    is kept for the next call, unless it is wrong.
    """
    with cache.workspace("downloads", cache.fingerprint(url)) as folder:
        complete, partial = folder / "complete", folder / "partial"
        if complete.exists():
            found = _described_by(complete)
            if _matches(found, pin):
                return complete, found
            discard(complete)  # of a time when another pin was asked for
        _fetch(url, partial, pin, local_hint=local_hint, sleep=sleep)
        found = _described_by(partial)
        if not _matches(found, pin):
            discard(partial)
            raise ValueError(
                f"{without_password(url)}: expected {_shown(pin)}, got {_shown(found)}; nothing was kept. {MEND}"
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
    with progress(f"download {without_password(url)}", pin.size, "bytes", done=furthest) as advance:
        while pin.size is None or _size(partial) != pin.size:
            try:
                _attempt(url, partial, pin, advance)
                return
            except (Cut, requests.RequestException, urllib3.exceptions.HTTPError) as error:
                failures = 1 if _size(partial) > furthest else failures + 1
                furthest = max(_size(partial), furthest)
                if failures == FAILURES or isinstance(error, Refused):
                    said = f"{without_password(url)} cannot be downloaded, stopped after {_size(partial):,} bytes"
                    raise OSError(f"{said} ({error}); check the address, try again, or {local_hint}") from error
                sleep(PAUSE * 2 ** (failures - 1))


def _attempt(url: str, partial: Path, pin: Pin, advance: Callable[[int], None]) -> None:
    """One request. Raises Cut where the answer ended early."""
    state, before = partial.with_name("state.json"), _size(partial)
    validator = json.loads(state.read_text()).get("validator") if state.exists() else None
    # Without either, nothing could tell that the rest belongs to another version of the file.
    have = before if validator or pin.sha256 else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-"} | ({"If-Range": validator} if validator else {})
    hooks = {"response": check_redirect}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT, hooks=hooks) as response:
        status = response.status_code
        if status == 416 or (status == 206 and not _continues(response, have)):
            discard(partial)
            advance(-before)
            raise Cut("the server sent another range than the one asked for, or none; starting from the beginning")
        if status not in (200, 206):
            raise (Cut if status in AGAIN else Refused)(f"the server answers HTTP {status} {response.reason}")
        have = have if status == 206 else 0
        write_json(state, {"validator": _validator(response)})
        advance(have - before)
        length = response.headers.get("Content-Length")
        _store(response, partial, have, advance, most=pin.size, said=without_password(url))
    whole = pin.size if length is None else have + int(length)
    if whole is not None and _size(partial) < whole:
        raise Cut(f"the connection was cut after {_size(partial):,} of {whole:,} bytes")


def check_redirect(response: requests.Response, *_: object, **__: object) -> None:
    """Raises Refused, before it is followed, for one to what is not the web, to less than https, or from a public host
    into a private network."""
    if not response.is_redirect:
        return
    try:
        address = urljoin(response.url, response.headers["Location"])
        before, after = urlsplit(response.url), urlsplit(address)
        wrong = {
            "neither http nor https": after.scheme not in ("http", "https"),
            "not https": (before.scheme, after.scheme) == ("https", "http"),
            "of a private network": not _is_private(before.hostname) and _is_private(after.hostname),
        }
    except ValueError as error:
        raise Refused(f"it leads to {response.headers['Location'][:200]!r}, which is no address ({error})") from error
    if said := [what for what, so in wrong.items() if so]:
        raise Refused(f"it leads to {without_password(address)}, which is {said[0]}")


def _is_private(host: str | None) -> bool:
    """Whether any address of the host is one that the web does not reach."""
    try:
        found = {ip_address(at[4][0].partition("%")[0]) for at in socket.getaddrinfo(host, None)}
    except OSError:  # of a host that is not known: the request will say so
        return False
    return not all(_meant(at).is_global for at in found)


def _meant(at: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that one of IPv6 carries (mapped, 6to4, NAT64), or itself."""
    if at.version == 4:
        return at
    carried = IPv4Address(int(at) & 0xFFFFFFFF) if at in NAT64 else None
    return at.ipv4_mapped or at.sixtofour or carried or at


def _continues(response: requests.Response, have: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _validator(response: requests.Response) -> str | None:
    """What makes a later range request fall back to the whole file if the file has changed; weak tags do not."""
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _store(
    response: requests.Response,
    partial: Path,
    have: int,
    advance: Callable[[int], None],
    *,
    most: int | None,
    said: str,
) -> None:
    """Raises ValueError, and keeps nothing, once there is more than `most`."""
    with partial.open("r+b" if have else "wb") as file:
        file.seek(have)
        # As sent: what a server calls a content encoding is how such files are stored.
        for chunk in response.raw.stream(CHUNK, decode_content=False):
            try:
                file.write(chunk)
                file.flush()
            except OSError as error:
                if error.errno not in FULL:
                    raise
                said = (
                    f"no space left after about {file.tell():,} bytes; free some, or set EADPR_CACHE to a larger disk"
                )
                said += ", and run again: the download goes on where it stopped"
                raise OSError(error.errno, said, str(partial)) from error
            advance(len(chunk))
            if most is not None and file.tell() > most:
                discard(partial)
                raise ValueError(
                    f"{said}: expected {most:,} bytes, and the server sends more; nothing was kept. {MEND}"
                )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
