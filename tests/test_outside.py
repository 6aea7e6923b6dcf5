"""What comes from outside and would reach further than it may: redirects, archives, links."""

import io
import json
import tarfile
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from eadpr.corpus import download
from eadpr.corpus.formats import documents, hotpot
from eadpr.corpus.formats.entity_questions import read_entity_questions
from tests.loopback import serving

pytestmark = pytest.mark.formats


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://host/x"])
def test_a_redirect_leads_to_nothing_but_the_web(tmp_path, address):
    def answer(to):
        to.send_response(302)
        to.send_header("Location", address)
        to.end_headers()

    with serving(do_GET=answer) as http, pytest.raises(OSError, match="cannot be downloaded"):
        download.download(f"http://127.0.0.1:{http.server_port}/x", download.Pin(None, None), local_hint="")


@pytest.mark.parametrize(("urls", "refused"), [
    (["https://a/x", "http://a/x"], True),
    (["https://a/x", "http://b/x", "https://a/x"], True),
    (["http://a/x", "https://a/x"], False),
])  # fmt: skip
def test_a_redirect_leads_to_no_less_than_https(urls, refused):
    *history, answer = [SimpleNamespace(url=url) for url in urls]
    answer.history = history
    with pytest.raises(OSError, match="from https to http") if refused else nullcontext():
        download.check_secure(answer)


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
