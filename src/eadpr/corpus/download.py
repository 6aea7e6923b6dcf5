"""A collection's files brought together: downloads checked and pinned, local files checked where they are.

A download is resumed where it was cut, tried again with growing pauses, checked, and kept in the cache: DVC empties the
stage's folder before every run, and a collection that gains a small file should not fetch 13 GB again.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.util import Retry

from eadpr.corpus.sources import LISTED, Source, without_password
from eadpr.runtime import cache
from eadpr.runtime.files import discard, link_or_copy, new_folder, read_json, sha256, write_json, write_text
from eadpr.runtime.progress import progress

PINS = "pins.json"
CHUNK = 1 << 20  # bytes
TRIES = 6  # in a row, none of which got any further than the ones before
PAUSE = 1.0  # seconds; doubled with every try
TIMEOUT = (30.0, 60.0)  # seconds to connect, and without a byte
PASSING = (408, 425, 429, 500, 502, 503, 504)  # states of HTTP that pass
BY_HAND = "get the file another way, put it into the collection's folder and write `path: NAME` for `url`"
MEND = "If the file was changed on purpose, mend sha256 and size in the collection's file (or pins.json)"


class Pin(NamedTuple):
    """Hash and size that a file must have; None if not known."""

    sha256: str | None
    size: int | None

    def matches(self, pin: "Pin") -> bool:
        return pin.sha256 in (None, self.sha256) and pin.size in (None, self.size)

    def __str__(self) -> str:
        size = "any size" if self.size is None else f"{self.size:,} bytes"
        return f"sha256 {self.sha256 or '(none)'} and {size}"


def fetch(source: Source, *, sources: Path, out: Path) -> list[str]:
    """Write `out`/: the downloaded files and files.json (name -> relative file). Local files stay where they are.

    A download without a hash in params.yaml must be what `sources`/pins.json says of its address; a new one is entered
    there, and the return value names those. Everything is checked before `out` appears.
    """
    raw_pins = read_json(sources / PINS) if (sources / PINS).exists() else {}
    pins = {url: Pin(**pin) for url, pin in raw_pins.items()}
    for file in source.files:
        if file.path is not None:
            path = sources / file.path
            if not path.is_file():
                raise FileNotFoundError(f"{path} does not exist; `eadpr add` brings files in, or put it there")
            pin, actual = Pin(file.sha256, file.size), Pin(sha256(path) if file.sha256 else None, _size(path))
            if not actual.matches(pin):
                raise ValueError(f"{path}: expected {pin}, got {actual}; it is another file or incomplete")
    downloads = [file for file in source.files if file.url is not None]
    new: dict[str, Pin] = {}
    with new_folder(out) as folder:
        for file in downloads:
            pinned = pins.get(file.url, Pin(None, None))
            pin = Pin(file.sha256 or pinned.sha256, pinned.size if file.size is None else file.size)
            path, actual = download(file.url, pin)
            link_or_copy(path, folder / file.name)
            if file.sha256 is None and file.url not in pins:
                new[file.url] = actual
        write_json(folder / LISTED, {file.name: file.name for file in downloads})
    if new:
        write_json(sources / PINS, {url: pin._asdict() for url, pin in (pins | new).items()})
    return [file.name for file in downloads if file.url in new]


def download(url: str, pin: Pin) -> tuple[Path, Pin]:
    """Return the file's place in the cache, and its hash and size.

    Raises ValueError for a file unlike `pin`, OSError for one that cannot be had or stored; the bytes fetched so far
    are kept for the next call, unless they are wrong.
    """
    with cache.workspace("downloads", cache.fingerprint(url)) as folder:
        complete, partial = folder / "complete", folder / "partial"
        if complete.exists():
            actual = Pin(sha256(complete), _size(complete))
            if actual.matches(pin):
                return complete, actual
            discard(complete)  # of a time when another pin was asked for
        address = without_password(url)
        try:
            _transfer(url, partial, pin)
        except (requests.RequestException, HTTPError) as error:
            stopped = f"{address} cannot be downloaded, stopped after {_size(partial):,} bytes ({error})"
            raise OSError(f"{stopped}; check the address, try again, or {BY_HAND}") from error
        actual = Pin(sha256(partial), _size(partial))
        if not actual.matches(pin):
            discard(partial)
            raise ValueError(f"{address}: expected {pin}, got {actual}; nothing was kept. {MEND}")
        partial.replace(complete)
        return complete, actual


def _transfer(url: str, partial: Path, pin: Pin) -> None:
    """Make requests until the file is there. `Retry` repeats those without an answer, the loop those that were cut."""
    # What a server says of when to come back may be hours.
    options = {"status_forcelist": PASSING, "raise_on_status": False, "respect_retry_after_header": False}
    retry, failures = Retry(TRIES - 1, backoff_factor=PAUSE, **options), 0
    label = f"download {without_password(url)}"
    with requests.Session() as session, progress(label, pin.size, "bytes", done=_size(partial)) as advance:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        while pin.size is None or _size(partial) != pin.size:
            start = _size(partial)
            try:
                _request(session, url, partial, pin, advance)
                return
            except HTTPError:
                failures = failures + 1 if _size(partial) <= start else 0
                if failures == TRIES:
                    raise
                time.sleep(PAUSE * 2**failures)


def _request(session: requests.Session, url: str, partial: Path, pin: Pin, advance: Callable[[int], None]) -> None:
    """Make one request for the missing bytes. Raises HTTPError of urllib3 if the answer ended early."""
    size, tag = _size(partial), partial.with_suffix(".etag")
    # Without a hash only the server's tag tells that the rest belongs to the same version of the file.
    version = tag.read_text() if tag.exists() and not pin.sha256 else ""
    start = size if pin.sha256 or version else 0
    headers = {"Accept-Encoding": "identity"} | (
        {"Range": f"bytes={start}-", "If-Range": version or None} if start else {}
    )
    with session.get(
        url, headers=headers, stream=True, timeout=TIMEOUT, hooks={"response": _stay_on_https}
    ) as response:
        status, etag = response.status_code, response.headers.get("ETag", "")
        is_other = version not in ("", etag) or f"bytes {start}-" not in response.headers.get("Content-Range", "")
        if status == 416 or (status == 206 and is_other):
            discard(partial)
            advance(-size)
            raise ProtocolError("the server sent another range than the one asked for, or none")
        if status not in (200, 206):
            raise requests.HTTPError(f"the server answers HTTP {status} {response.reason}")
        start = start if status == 206 else 0
        advance(start - size)
        with partial.open("r+b" if start else "wb") as file:
            if not start:
                write_text(tag, etag if etag.startswith('"') else "")  # a weak tag may stay where bytes change
            file.seek(start)
            # A content encoding, as servers call it, is how such files are stored.
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                file.flush()
                advance(len(chunk))
    if pin.size is not None and _size(partial) < pin.size:
        raise ProtocolError(f"the connection was cut after {_size(partial):,} of {pin.size:,} bytes")


def _stay_on_https(response: requests.Response, *_: object, **__: object) -> None:
    """Raise HTTPError for a redirect from https to http; a hook of requests, which follows none to another scheme."""
    address = urljoin(response.url, response.headers.get("Location", ""))
    if response.url.startswith("https:") and address.startswith("http:"):
        raise requests.HTTPError(f"it leads to {without_password(address)}, which is not https")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
