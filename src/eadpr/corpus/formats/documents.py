"""Passages of a folder of documents, cut at their headings."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eadpr.corpus.formats.own import write_rows
from eadpr.corpus.rows import check_text

DOCUMENTS = (".txt", ".md")
MARK = "\0"  # before a heading, whose text may begin with any other character
# What looks like a heading in Markdown's code is none.
_CODE = r"^ {0,3}(`{3,}|~{3,})(?s:.*?)(?:^ {0,3}\1|\Z)"
# YAML about a page, not in its text.
_FRONT_MATTER = re.compile(r"\A---\n[a-z_-]+:.*\n(?:(?:[\w-]+:|[ \t#-]).*\n|\n)*?---\n")
_MARKDOWN = re.compile(rf"(?m){_CODE}|^(?P<marks>#{{1,6}})[ \t](?P<heading>.*)$")
HIDDEN = re.compile(r"\.|__MACOSX$|node_modules$")  # folders and files that no person wrote into, by their names' begin


def convert_documents(folder: Path, out: Path) -> tuple[Path, str]:
    """Write a file of passages in `out`. Returns it, and in words how many files are not read, by their endings or as
    hidden or empty, the most frequent first."""
    unread: Counter[str] = Counter()
    file = write_rows(out / f"{folder.resolve().name}.passages.jsonl", read_sections(folder, unread))
    return file, ", ".join(f"{count:,} {ending}" for ending, count in unread.most_common())


def _kind_of(path: Path, folder: Path) -> str:
    """Return a file's ending, or that it is hidden or in a hidden folder, or a link that is not followed."""
    if any(map(HIDDEN.match, path.relative_to(folder).parts)):
        return "hidden"
    return path.suffix.lower() or "without an ending" if path.is_file() else "links to folders or to nothing"


def read_sections(folder: Path, unread: Counter[str]) -> Iterator[dict[str, Any]]:
    """Read documents in sections, at headings if there are any: id `path:number`, title the headings that it stands
    under (`Oslo: History`), or the file's name. `unread` counts the other files."""
    kinds = {path: _kind_of(path, folder) for path in folder.rglob("*") if path.is_file() or path.is_symlink()}
    unread.update(kind for kind in kinds.values() if kind not in DOCUMENTS)
    paths = sorted(path for path, kind in kinds.items() if kind in DOCUMENTS)
    if not paths:
        raise ValueError(f"{folder} is a folder without documents ({', '.join(DOCUMENTS)})")
    for path in paths:
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path} is a link to a file outside of {folder}; put the file itself there")
        try:
            text = check_text(path.read_text(encoding="utf-8-sig"), str(path), "", empty=True)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: byte {error.start} is not UTF-8; convert it") from None
        if path.suffix.lower() == ".md":
            text = _MARKDOWN.sub(_mark_heading, _FRONT_MATTER.sub("", text))
        name = "_".join(path.relative_to(folder).as_posix().split())
        parts = ["", "", *re.split(rf"(?m)^{MARK}(#+) *(.+)$", text)]
        sections, headings = list[tuple[str, str]](), dict[int, str]()
        for marks, heading, section in zip(parts[::3], parts[1::3], map(str.strip, parts[2::3]), strict=True):
            headings = {level: above for level, above in headings.items() if level < len(marks)} | {len(marks): heading}
            sections += [(": ".join(filter(None, headings.values())), section)] * bool(section)
        unread.update(["empty"] * (not sections))
        for number, (title, section) in enumerate(sections, start=1):
            yield {"id": f"{name}:{number}", "title": title or path.stem, "text": section}


def _mark_heading(match: re.Match[str]) -> str:
    heading = (match["heading"] or "").strip(" \t#")
    return f"{MARK}{match['marks']}{heading}" if heading else match[0]
