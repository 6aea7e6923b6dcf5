"""What comes from outside and would reach further than it may: redirects, archives, links."""

import io
import json
import tarfile
import zipfile
from contextlib import nullcontext

import pytest
import requests

from eadpr.corpus import download
from eadpr.corpus.formats import documents, hotpot
from eadpr.corpus.formats.entity_questions import read_entity_questions
from eadpr.corpus.redirects import check_redirect
from tests.loopback import serving

pytestmark = pytest.mark.formats


@pytest.mark.parametrize(("address", "message"), [
    ("file:///etc/hostname", "it leads to file:///etc/hostname, which is neither http nor https"),
    ("ftp://ann:secret@host/x", "it leads to ftp://host/x, which is neither http nor https"),
    ("http://[::1", r"it leads to 'http://\[::1', which is no address"),
])  # fmt: skip
def test_a_redirect_leads_to_nothing_but_the_web(tmp_path, address, message):
    def answer(to):
        to.send_response(302)
        to.send_header("Location", address)
        to.end_headers()

    with serving(do_GET=answer) as http, pytest.raises(OSError, match=message) as refused:
        download.download(f"http://127.0.0.1:{http.server_port}/x", download.Pin(None, None), local_hint="")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("start", "location", "refused"), [
    ("http://93.184.216.34/x", "http://127.0.0.1/x", True),
    ("http://93.184.216.34/x", "//169.254.169.254/latest", True),
    ("http://93.184.216.34/x", "http://10.0.0.7:8080/x", True),
    ("http://93.184.216.34/x", "http://[::1]/x", True),
    ("http://93.184.216.34/x", "http://[::ffff:10.0.0.7]/x", True),
    ("http://93.184.216.34/x", "http://[2002:a00:7::1]/x", True),
    ("http://93.184.216.34/x", "http://[64:ff9b::a00:7]/x", True),
    ("http://93.184.216.34/x", "http://[64:ff9b::5db8:d822]/x", False),
    ("https://93.184.216.34/x", "http://93.184.216.34/x", True),
    ("http://93.184.216.34/x", "https://93.184.216.35/y", False),
    ("http://93.184.216.34/x", "/y", False),
    ("http://10.0.0.7/x", "http://10.0.0.8/y", False),
])  # fmt: skip
def test_a_public_server_leads_nobody_into_their_own_network(start, location, refused):
    answer = requests.Response()
    answer.status_code, answer.url, answer.headers["Location"] = 302, start, location
    with pytest.raises(requests.HTTPError, match="it leads to ") if refused else nullcontext():
        check_redirect(answer)


def test_nothing_of_an_archive_is_written(tmp_path):
    """Members that climb out or are links: what is text is read where it is, and no file appears."""
    line = json.dumps({"title": "A", "text": ["a"]}).encode()
    with tarfile.open(tmp_path / "pages.tar", "w") as archive:
        for name in ("../out.jsonl", f"{tmp_path}/out.jsonl", "a/../../out.jsonl"):
            member = tarfile.TarInfo(name)
            member.size = len(line)
            archive.addfile(member, io.BytesIO(line))
        link = tarfile.TarInfo("link.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
        archive.writestr("../../P19.dev.json", '[{"question": "q", "answers": ["a"]}]')
    before = sorted(tmp_path.parent.rglob("*"))
    assert [title for _, _, title, *_ in hotpot.read_passages(tmp_path / "pages.tar")] == ["A"] * 3
    assert [asked.question for asked in read_entity_questions(tmp_path / "e.zip")] == ["q"]
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_a_link_among_documents_leads_to_no_file_elsewhere(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("A.")
    (folder / "b.md").symlink_to(folder / "a.md")
    assert [row["text"] for row in documents.read_sections(folder)] == ["A.", "A."]
    (tmp_path / "key.txt").write_text("secret")
    (folder / "c.txt").symlink_to(tmp_path / "key.txt")
    with pytest.raises(ValueError, match=r"c\.txt is a link to a file outside of .*docs; put the file itself there"):
        list(documents.read_sections(folder))
