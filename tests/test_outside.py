"""What comes from outside and would reach further than it may: archives, links."""

import io
import json
import tarfile
import zipfile

import pytest

from eadpr.corpus.formats import documents, hotpot
from eadpr.corpus.formats.entity_questions import read_entity_questions

pytestmark = pytest.mark.formats


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
