"""Which of a collection's own look-alikes are asked for, and that the others are counted."""

import json

import pytest

from eadpr.corpus.sources import File
from eadpr.writers.config import Given
from eadpr.writers.given import generate_from_files

pytestmark = pytest.mark.writers
OWN = File(kind="near_duplicates", path="own.jsonl")


def said(path, capsys, *types: str) -> str:
    generate_from_files(Given(types=list(types)), [(OWN, path), (OWN, path)])
    return capsys.readouterr().err


def test_texts_of_other_types_are_counted_by_type_most_first(tmp_path, capsys):
    path = tmp_path / "own.jsonl"
    types = ["noise", "a\u202eb", "noise", "misinfo", "misinfo", "misinfo"]
    path.write_text("".join(json.dumps({"question": "q", "text": "x", "type": one}) + "\n" for one in types))
    assert said(path, capsys, "noise") == (
        "given: 8 of 12 texts are of no type in given.types ['noise'] and were skipped:"
        " {'misinfo': 6, 'a\\u202eb': 2}\n"
    )
    assert said(path, capsys, "noise", "misinfo", "a\u202eb", "near_duplicate") == ""
