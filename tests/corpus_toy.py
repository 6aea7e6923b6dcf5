"""Files of sources, and the records that are made of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from eadpr.corpus.prepare import TABLES, prepare
from eadpr.corpus.sources import Prepare, Source
from eadpr.storage import tables
from tests.repository import ROOT

SHARED = ROOT.parent / "shared" / "data"
PLAIN = {"split_words": None, "odd_rows": 0, "add_context_passages": False, "keep_own_documents": False}
PASSAGES = "id\ttitle\ttext\na\tT\tAlpha is here.\nb\tU\tBeta is here.\n"
OF_PASSAGES = {"kind": "passages", "path": "p.tsv"}


def real(test: Any) -> Any:
    """Marks a test of the real files."""
    return pytest.mark.shared(pytest.mark.skipif(not SHARED.exists(), reason="shared/data is absent")(test))


def lines(*objects: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in objects)


def write(path: Path, content: str | bytes | list) -> Path:
    """A list as JSON."""
    text = json.dumps(content) if isinstance(content, list) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def prepared(
    folder: Path, *files: dict[str, Any], format: str = "own", sources: Path | None = None, facts=None, paq=None,
    **changes,
) -> tuple[Path, dict[str, Any]]:  # fmt: skip
    """The folder of records, and the report."""
    source, settings = Source.model_validate({"format": format, "files": list(files)}), Prepare(**PLAIN | changes)
    out, sources = folder / "records", sources or folder
    return out, prepare(source, settings, sources=sources, raw=folder, out=out, facts=facts, paq=paq)


def rows(records: Path, name: str) -> list:
    return list(tables.rows(records / f"{name}.parquet", TABLES[name]))
