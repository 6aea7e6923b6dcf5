"""Write the pages of the site to site/pages: README, the pages of docs/, and those made of the code."""

import html
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML

from docs import demo, one_batch, paper_tables, reference, schema, study_tables
from docs.figures import with_figures
from docs.numbers import check_first_screen, check_headline, check_share

ROOT = Path(__file__).resolve().parent.parent
DOCS, HOME = "docs", "README.md"
RECORDS = re.compile(r"docs/(log/|studies/\w[\w-]*/|faults\.md)")  # pages whose numbers are what they are for
BESIDE = (".png", ".svg", ".css", ".js")  # copied as they are
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")  # not of other hosts, nor within a page
PICTURE = re.compile(r'(?<=[ "])(src(?:set)?)="([^":]+)"')  # in HTML
TERM = re.compile(r"(?m)^\* \*\*(.+?)\*\*: (.+(?:\n  .+)*)")  # of the glossary
# What gets no tooltip: code, links, HTML, headings.
MARKED = re.compile(r"(?ms)(^```.*?^```|`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|^#[^\n]*$)")
MADE = {
    "explanation/one-batch.md": one_batch.page,
    "reference/settings.md": reference.settings,
    "reference/stages.md": reference.stages,
    "reference/commands.md": reference.commands,
    "reference/tables.md": reference.tables_page,
    "reference/metrics.md": reference.metrics,
    "reference/library.md": reference.library,
    "studies/tables.md": study_tables.page,
}


def write(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    for path in filter(lambda path: path.suffix in BESIDE, (ROOT / DOCS).rglob("*")):
        _write_file(out / path.relative_to(ROOT / DOCS), path.read_bytes())
    terms = dict(TERM.findall((ROOT / DOCS / "glossary.md").read_text(encoding="utf-8")))
    for path in (ROOT / HOME, *sorted((ROOT / DOCS).rglob("*.md"))):
        page = path.relative_to(ROOT)
        text = linked(path.read_text(encoding="utf-8"), page)
        if not RECORDS.match(page.as_posix()):
            check_share(str(page), text)
        if page == Path(HOME):
            metrics = json.loads(reference.committed(ROOT / "metrics" / "atlas.json"))
            check_first_screen(HOME, text)
            check_headline(HOME, text, metrics)
            demo.check(metrics)
        if path.name != "glossary.md":
            text = explained(text, terms)
        if path.name == "findings.md":
            text = with_figures(text)
        title = "" if text.startswith("#") else f"# {page.stem}, {page.parent.name}\n\n"  # tables of studies have none
        _write_file(out / place(page), (title + text).encode())
    pages = {name: page() for name, page in MADE.items()}
    for name, text in (pages | paper_tables.pages()).items():
        _write_file(out / name, text.encode())
    check_nav(out)


def check_nav(out: Path) -> None:
    """Zensical passes over what `nav` names and is not there."""
    nav = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = set(re.findall(r"[\w/-]+\.md", str(nav)))
    written = {path.relative_to(out).as_posix() for path in out.rglob("*.md")}
    tables = {name for name in written if name.startswith("studies/") and name.count("/") > 1}  # found from their index
    if wrong := sorted(listed ^ (written - tables)):
        raise ValueError(f"mkdocs.yml: nav must name every page of the site, and no other: {', '.join(wrong)}")


def place(page: Path) -> Path:
    """Return where a page of the repository stands in the site."""
    inside = page.relative_to(DOCS) if page.is_relative_to(DOCS) else page
    return inside.with_name("index.md") if page.name == HOME else inside


def linked(text: str, page: Path) -> str:
    """Return a page with links as they are in the site; one to a file that is no page there is its text alone."""

    def locate(target: str) -> str | None:
        path = Path(os.path.normpath(page.parent / target))
        if not (ROOT / path).exists():
            raise ValueError(f"{page}: the link to {target} names no file; mend it")
        inside = path.is_relative_to(DOCS) or path == Path(HOME)
        if not inside or path.suffix not in (".md", *BESIDE):
            return None
        return os.path.relpath(place(path), place(page).parent)

    def link(match: re.Match) -> str:
        target = locate(match[2])
        return match[1] if target is None else f"[{match[1]}]({target}{match[3] or ''})"

    return PICTURE.sub(lambda match: f'{match[1]}="{locate(match[2])}"', LINK.sub(link, text))


def explained(text: str, terms: Mapping[str, str]) -> str:
    """Return a page on which each term of the glossary has a tooltip, where it first stands in plain text."""
    meanings = {term: html.escape(" ".join(meaning.replace("`", "").split())) for term, meaning in terms.items()}
    meanings |= {term[0].upper() + term[1:]: meaning for term, meaning in meanings.items()}
    names = "|".join(re.escape(term) for term in sorted(meanings, key=len, reverse=True))
    pattern, met = re.compile(rf"(?<![\w@.-])({names})s?(?![\w@-])"), set()

    def explain(match: re.Match) -> str:
        if (meaning := meanings[match[1]]) in met:
            return match[0]
        met.add(meaning)
        return f'<abbr title="{meaning}">{match[0]}</abbr>'

    parts = MARKED.split(text)
    parts[::2] = [pattern.sub(explain, part) for part in parts[::2]]
    return "".join(parts)


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    write(ROOT / "site" / "pages")
    schema.write()
