"""The scripts and the notebook of examples/ run, with tiny models."""

import json
import runpy
import shutil
import sys

import pytest

from tests.repository import ROOT
from tests.test_publish import make, publish

pytestmark = pytest.mark.publishing


def test_the_scripts_run(tmp_path, monkeypatch, capfd):
    publish(make(tmp_path), tmp_path / "published", vectors=True)
    model, rows = tmp_path / "random" / "passage_encoder", tmp_path / "rows.jsonl"
    row = {"answers": ["london"], "text": "W1 w2 w3. W3 w4 london. W5\u2028w6 w7."}
    lines = [row | {"question": f"was w{i}?", "title": f"T{i}"} for i in range(1, 8)]
    rows.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, *words in (
        ("train", model, rows, "trained", "1"), ("compare", rows, "trained", model, "published"),
        ("publish", "arm", "published", "who?"), ("own_data", "mine", rows, "--dry-run"),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    cells = json.loads((ROOT / "examples" / "evidence.ipynb").read_text(encoding="utf-8"))["cells"]
    first, *rest = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    exec("\n".join([first, "MODEL = 'trained'", *rest]), {})
    out = capfd.readouterr().out
    assert "Who built the bridge? → " in out
    assert all(f"| {name} " in out for name in ("trained", model, "published"))
    assert "nothing was written (--dry-run)" in out
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SystemExit, match=r"pip install .* sentence-transformers"):
        runpy.run_path(str(ROOT / "examples" / "publish.py"))
