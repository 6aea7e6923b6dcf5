"""Downloads against a loopback server that cuts connections, and knows ranges or not."""

import gzip
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import requests

from eadpr.corpus import download as downloads
from eadpr.corpus.download import Pin, download, fetch
from eadpr.corpus.sources import Source
from eadpr.runtime import cache
from tests.loopback import serving

BODY = bytes(range(256)) * 4096 * 3  # 3 MiB
pytestmark = pytest.mark.formats
SHA = hashlib.sha256(BODY).hexdigest()


class Server:
    """Serves `body`; `cuts` are the numbers of bytes after which the next answers break off; `states` come first."""

    def __init__(self) -> None:
        self.body, self.ranges, self.length = BODY, True, True
        self.tag, self.obeys = "", True
        self.cuts: list[int] = []
        self.states: list[int] = []
        self.range_headers: list[str | None] = []
        self.pauses: list[float] = []

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        byte_range = to.headers.get("Range")
        self.range_headers.append(byte_range)
        if self.states:
            to.send_response(self.states.pop(0))
            to.end_headers()
            return
        start = int(byte_range.removeprefix("bytes=").rstrip("-")) if byte_range else 0
        part = bool(byte_range) and self.ranges and (not self.obeys or to.headers.get("If-Range") in (None, self.tag))
        rest = self.body[start:] if part else self.body
        to.send_response(206 if part else 200)
        if part:
            to.send_header("Content-Range", f"bytes {start}-{len(self.body) - 1}/{len(self.body)}")
        if self.length:
            to.send_header("Content-Length", str(len(rest)))
        if self.tag:
            to.send_header("ETag", self.tag)
        to.end_headers()
        for offset in range(0, len(rest := rest[: self.cuts.pop(0)] if self.cuts else rest), 2**16):
            try:
                to.wfile.write(rest[offset : offset + 2**16])
            except ConnectionError:  # the other side has enough
                return


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setattr(time, "sleep", server.pauses.append)
    with serving(do_GET=server.answer) as server.http:
        server.url = f"http://127.0.0.1:{server.http.server_port}/folder/data.bin?x=1"
        yield server


RIGHT = Pin(SHA, len(BODY))
LOCAL = {"kind": "questions", "path": "questions.tsv"}


def get(server: Server, pin: Pin = RIGHT) -> bytes:
    path, actual = download(server.url, pin)
    assert actual == Pin(hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
    return path.read_bytes()


def test_a_cut_download_goes_on_where_it_stopped(server):
    server.cuts = [1_000_000, 500_000]
    for _ in range(2):  # the second time from the cache
        assert get(server) == BODY
    assert server.range_headers == [None, "bytes=1000000-", "bytes=1500000-"]
    assert server.pauses == [1.0, 1.0]  # each try got further, so the pause does not grow


@pytest.mark.parametrize(("changes", "pin", "expected"), [
    ({"ranges": False}, RIGHT, [None, "bytes=1000000-"]),  # the server sends all of it again
    ({}, Pin(None, None), [None, None]),  # nothing could tell another version of the file
    ({"tag": 'W/"a"'}, Pin(None, None), [None, None]),
    ({"tag": '"a"'}, Pin(None, None), [None, "bytes=1000000-"]),
    ({"length": False}, RIGHT, [None, "bytes=1000000-"]),  # only the pinned size tells that it was cut
])  # fmt: skip
def test_a_cut_download_without_ranges_or_a_hash_or_a_length(server, changes, pin, expected):
    vars(server).update(changes, cuts=[1_000_000])
    assert get(server, pin) == BODY
    assert server.range_headers == expected


def test_a_second_call_resumes_what_the_first_left(server):
    server.cuts = [700_000] + [0] * 10
    with pytest.raises(OSError, match="cannot be downloaded, stopped after 700,000 bytes"):
        get(server)
    server.cuts = []
    assert get(server) == BODY
    assert server.range_headers[-1] == "bytes=700000-"


@pytest.mark.parametrize("obeys", [True, False])
def test_without_a_hash_another_version_of_the_file_is_never_appended(server, obeys):
    """Nor where a server sends the rest of the other version all the same."""
    server.tag, server.cuts = '"a"', [700_000] + [0] * 10
    with pytest.raises(OSError, match="stopped after 700,000 bytes"):
        get(server, Pin(None, None))
    server.tag, server.obeys, server.cuts, server.body = '"b"', obeys, [], BODY[::-1]
    assert get(server, Pin(None, None)) == BODY[::-1]


def test_tries_are_bounded_pauses_grow_and_the_remedy_is_named(server):
    server.states = [503, 500]
    assert get(server) == BODY
    server.range_headers.clear()
    server.pauses.clear()
    server.body, server.states = BODY[::-1], [500] * 100
    with pytest.raises(OSError, match=r"data\.bin.* HTTP 500.*write `path: NAME` for `url`"):
        get(server, Pin(None, 1))
    assert (len(server.range_headers), server.pauses) == (downloads.TRIES, [2.0, 4.0, 8.0, 16.0])
    server.states = [404]
    with pytest.raises(OSError, match="HTTP 404"):
        get(server, Pin(None, 1))
    assert len(server.range_headers) == downloads.TRIES + 1, "it fails at once"


def test_a_password_in_an_address_is_never_shown(server, capfd):
    server.url = server.url.replace("http://", "http://ann:secret@")
    assert get(server) == BODY
    server.states, server.body = [404], BODY[::-1]
    for pin in (Pin(None, 7), Pin(SHA[::-1], None)):
        with pytest.raises((OSError, ValueError), match=r"http://127\.0\.0\.1") as raised:
            get(server, pin)
        assert "secret" not in str(raised.value)
    assert "secret" not in "".join(capfd.readouterr())


def test_wrong_bytes_fail_with_both_hashes_and_are_not_kept(server):
    server.body = wrong = gzip.compress(b"hello", mtime=0)  # which is not unpacked
    with pytest.raises(ValueError, match=SHA) as raised:
        get(server, Pin(SHA, None))
    assert hashlib.sha256(wrong).hexdigest() in str(raised.value)
    server.body = BODY
    assert get(server) == BODY


def test_a_redirect_leaves_no_https():
    answer = requests.Response()
    answer.status_code, answer.url, answer.headers["Location"] = 302, "https://host/x", "http://ann:secret@host/x"
    with pytest.raises(requests.HTTPError, match="it leads to http://host/x, which is not https"):
        downloads._stay_on_https(answer)
    answer.headers["Location"] = "/y"
    downloads._stay_on_https(answer)


def source(server: Server, **fields: object) -> Source:
    files = [{"kind": "passages", "url": server.url, **fields}, LOCAL]
    return Source.model_validate({"format": "own", "files": files})


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "questions.tsv").write_text("question\nwho?\n")
    return folder


def test_first_fetch_records_a_pin_and_later_ones_hold_to_it(server, sources, tmp_path):
    out = tmp_path / "raw"
    assert fetch(source(server), sources=sources, out=out) == ["data.bin"]
    assert json.loads((sources / "pins.json").read_text()) == {server.url: {"sha256": SHA, "size": len(BODY)}}
    assert json.loads((out / "files.json").read_text()) == {"data.bin": "data.bin"}
    assert (out / "data.bin").read_bytes() == BODY
    assert fetch(source(server), sources=sources, out=out) == []

    for marker in cache.root().rglob("complete"):
        marker.unlink()
    server.body = BODY[::-1]
    with pytest.raises(ValueError, match=SHA):
        fetch(source(server), sources=sources, out=out)
    assert (out / "data.bin").read_bytes() == BODY, "the earlier output must be untouched"


@pytest.mark.parametrize(("changes", "message"), [
    ({"size": 14}, None), ({"sha256": "0" * 64}, "expected sha256 000"), ({"size": 3}, "and 3 bytes, got .* 14 bytes"),
    ({"path": "other.tsv"}, r"other\.tsv does not exist"),
])  # fmt: skip
def test_local_files_are_checked_and_not_copied(tmp_path, sources, changes, message):
    local_source = Source.model_validate({"format": "own", "files": [LOCAL | changes]})
    with pytest.raises((ValueError, FileNotFoundError), match=message) if message else nullcontext():
        fetch(local_source, sources=sources, out=tmp_path / "raw")
    assert [path.name for path in tmp_path.glob("raw/*")] == ([] if message else ["files.json"])
