"""Passages of a folder: of its documents, cut at their headings, or of what `datasets` saved there."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DOCUMENTS = (".txt", ".md", ".html", ".htm")
MARK = "\0"  # before a heading of HTML, whose text may begin with any other character
_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+(.+?)[ \t#]*$")
_MARKED = re.compile(rf"(?m)^{MARK} *(.+)$")
_NONE = re.compile(r"(?!)")
_FENCED = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)")


def sections(folder: Path) -> Iterator[dict[str, Any]]:
    """Sections, at headings where there are any: id `path:number`, title the heading, else the file's name."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in DOCUMENTS and path.is_file())
    if not paths:
        raise ValueError(
            f"{folder} is a folder without documents ({', '.join(DOCUMENTS)}) and none that `datasets` saved"
        )
    for path in paths:
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path} is a link to a file outside of {folder}; put the file itself there")
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: byte {error.start} is not UTF-8; convert the file") from None
        if path.suffix.lower() in (".html", ".htm"):
            text = _marked(text)
        name = "_".join(path.relative_to(folder).as_posix().split())
        for number, (heading, section) in enumerate(_sections(text, path), start=1):
            yield {"id": f"{name}:{number}", "title": heading or path.stem, "text": section}


def unread(folder: Path) -> dict[str, int]:
    """How many files of a folder are no documents, by their endings, the most frequent first; empty for a folder that
    `datasets` saved."""
    if (folder / "dataset_info.json").is_file():
        return {}
    endings = (path.suffix.lower() or "without an ending" for path in folder.rglob("*") if path.is_file())
    return dict(Counter(ending for ending in endings if ending not in DOCUMENTS).most_common())


def _sections(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """(heading, text), those with text alone. A plain text has no headings, and code none of Markdown's."""
    kind = path.suffix.lower()
    code = [match.span() for match in _FENCED.finditer(text)] if kind == ".md" else []
    heads = [
        head
        for head in {".txt": _NONE, ".md": _HEADING}.get(kind, _MARKED).finditer(text)
        if not any(start <= head.start() < end for start, end in code)
    ]
    starts = [("", 0), *((head[1], head.end()) for head in heads)]
    ends = [*(head.start() for head in heads), len(text)]
    for (heading, start), end in zip(starts, ends, strict=True):
        if section := text[start:end].strip():
            yield heading, section


class _Page(HTMLParser):
    """Text of a page, its headings marked; scripts, styles and navigation left out."""

    HIDDEN = ("script", "style", "nav", "template", "noscript")
    HEAD = (*HIDDEN, "html", "head", "title", "meta", "link", "base", "object")  # another tag ends the head
    AROUND = ("div", "header", "footer", "aside", "section", "article", "body")
    BLOCKS = ("p", "div", "li", "br", "tr", "section", "article", "table", "ul", "ol", "pre", "blockquote", "td")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden, self._head = list[str](), False  # what is open, from the hidden tag on

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._head = tag == "head" or (self._head and tag in self.HEAD)
        if tag == "main":  # no navigation may hold it, so one was left open
            self._hidden.clear()
        if tag in self.HIDDEN or (self._hidden and tag in self.AROUND):
            self._hidden.append(tag)
        if tag in self.BLOCKS:
            self.parts.append("\n")
        elif re.fullmatch("h[1-6]", tag):
            self.parts.append(f"\n\n{MARK}")

    def handle_endtag(self, tag: str) -> None:
        self._head &= tag != "head"
        if tag in self._hidden:
            del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
        elif tag in self.AROUND:  # of what is around the hidden tag, which nobody closed
            self._hidden.clear()
        if re.fullmatch("h[1-6]", tag):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden and not self._head:
            self.parts.append(re.sub(r"\s+", " ", data.replace(MARK, " ")))


def _marked(text: str) -> str:
    page = _Page()
    page.feed(text)
    page.close()
    lines = (line.strip() for line in "".join(page.parts).splitlines())
    return re.sub(rf"\n{{3,}}|^{MARK} *$", "\n\n", "\n".join(lines), flags=re.MULTILINE)


def saved_dataset(folder: Path, out: Path) -> Path:
    """What `Dataset.save_to_disk` wrote, as Parquet."""
    try:
        names = [file["filename"] for file in json.loads((folder / "state.json").read_text("utf-8"))["_data_files"]]
        if outside := [name for name in names if Path(name).name != name]:
            raise ValueError(f"state.json names {outside[0]!r}, which is no file of the folder")
        with pa.memory_map(str(folder / names[0])) as first:
            schema = pa.ipc.open_stream(first).schema.remove_metadata()
        with pq.ParquetWriter(out, schema) as writer:
            for name in names:
                with pa.memory_map(str(folder / name)) as file:
                    for batch in pa.ipc.open_stream(file):
                        batch.validate(full=True)  # else a damaged one ends the process
                        writer.write_batch(batch.cast(schema))
    except (MemoryError, PermissionError):
        raise
    except (OSError, LookupError, TypeError, RecursionError, ValueError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{folder}: no dataset that can be read ({said}); save it anew with save_to_disk") from error
    return out
