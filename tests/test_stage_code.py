"""The list of the code each stage imports, which decides what an edit reruns."""

from __future__ import annotations

import hashlib

import pytest

from eadpr import stage_code
from tests.repository import ROOT

FILES = {
    "stages/__init__.py": "",
    "stages/train.py": "def main():\n    from eadpr.training import loop\n    import torch\n",
    "stages/report.py": "import eadpr.tables\n",
    "src/eadpr/__init__.py": "",
    "src/eadpr/tables.py": "from eadpr.training.loop import steps\n",
    "src/eadpr/training/__init__.py": "# of the package\n",
    "src/eadpr/training/loop.py": "from eadpr.training.losses import dpr\n",
    "src/eadpr/training/losses.py": "import math\n",
    "src/eadpr/unused.py": "import eadpr.tables\n",
}


@pytest.fixture
def repository(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def listed(root) -> dict[str, list[str]]:
    return {module: [line.split("  ")[1] for line in text.splitlines()] for module, text in stage_code.lists(root)}


def test_what_a_stage_reaches_is_listed_inside_functions_and_by_way_of_others_too(repository):
    loop = ["src/eadpr/training/__init__.py", "src/eadpr/training/loop.py", "src/eadpr/training/losses.py"]
    assert listed(repository) == {
        "train": [*loop, "stages/train.py"],
        "report": ["src/eadpr/tables.py", *loop, "stages/report.py"],
    }


def test_a_line_holds_the_hash_of_the_file(repository):
    lists = dict(stage_code.lists(repository))
    of_report = hashlib.sha256(FILES["stages/report.py"].encode()).hexdigest()
    assert lists["report"].splitlines()[-1] == f"{of_report}  stages/report.py"


def test_an_edit_changes_the_lists_of_the_stages_that_reach_it_only(repository):
    before = dict(stage_code.lists(repository))
    stage_code.imports.cache_clear()
    (repository / "src/eadpr/tables.py").write_text("from eadpr.training.loop import step\n")
    after = dict(stage_code.lists(repository))
    assert before["train"] == after["train"]
    assert before["report"] != after["report"]


def test_a_relative_import_is_refused(repository):
    (repository / "stages/train.py").write_text("\nfrom . import run\n")
    with pytest.raises(ValueError, match=r"stages/train.py:2: relative import; write the module's full name"):
        dict(stage_code.lists(repository))


def test_of_this_repository():
    lists = listed(ROOT)
    assert "src/eadpr/training/losses.py" in lists["train"]
    assert "src/eadpr/evaluation/metrics.py" in lists["evaluate"]
    for module in ("train", "encode", "retrieve", "probe"):
        assert not any(path.startswith("src/eadpr/evaluation/") for path in lists[module])
