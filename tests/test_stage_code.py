"""The lists of code that each stage imports, which decide what an edit reruns."""

import os
import shutil
import subprocess
import sys

import pytest

from eadpr.runtime import stage_code
from tests.repository import ROOT

FILES = {
    "stages/__init__.py": "", "stages/train.py": "def main():\n    from eadpr.training import loop\n    import torch\n",
    "stages/report.py": "import eadpr.storage.tables\n", "src/eadpr/__init__.py": "",
    "src/eadpr/storage/tables.py": "from eadpr.training.loop import steps\n",
    "src/eadpr/training/__init__.py": "EPOCHS = 1\n",
    "src/eadpr/training/loop.py": "from eadpr.training.losses import dpr\n",
    "src/eadpr/training/losses.py": "import math\n", "src/eadpr/unused.py": "import eadpr.storage.tables\n",
}  # fmt: skip


@pytest.fixture
def repository(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def listed(root) -> dict[str, list[str]]:
    return {module: [line.split("  ")[1] for line in text.splitlines()] for module, text in stage_code.lists(root)}


def test_imports_inside_functions_and_of_other_modules_are_listed(repository):
    loop = ["src/eadpr/training/__init__.py", "src/eadpr/training/loop.py", "src/eadpr/training/losses.py"]
    assert listed(repository) == {
        "train": [*loop, "stages/train.py"],
        "report": ["src/eadpr/storage/tables.py", *loop, "stages/report.py"],
    }


def changed(repository, file: str, text: str) -> set[str]:
    """Write `file` and return the lines that this changes, as `<path> of <module>`."""
    old = lines(repository)
    (repository / file).write_text(text, encoding="utf-8")
    return {line.partition("  ")[2] for line in old ^ lines(repository)}


def lines(repository) -> set[str]:
    stage_code._read.cache_clear()
    stage_code._files.cache_clear()
    return {f"{line} of {module}" for module, text in stage_code.lists(repository) for line in text.splitlines()}


def in_both(file: str) -> set[str]:
    return {f"{file} of train", f"{file} of report"}


def test_an_edit_changes_the_lines_of_its_file_in_the_lists_that_have_it(repository):
    imported = "from eadpr.training.loop import step\n"
    assert changed(repository, "src/eadpr/storage/tables.py", imported) == {"src/eadpr/storage/tables.py of report"}
    assert changed(repository, LOSSES, "import cmath\n") == in_both(LOSSES)


LOSSES = "src/eadpr/training/losses.py"
CODE = r"""'''A module.'''
import math

@cache
def loss(scores: list, tau=0.5, *, form='paper'):
    "Of scores."
    total = f"{sum(scores):>{tau}.2f} of {form!r}"
    return (total, b"\x00", math.pi, None, ...)  # a comment

class Loss:
    '''Weights.'''
    weight = 1
"""


@pytest.mark.parametrize(("old", "new"), [
    ("'''A module.'''", ""),
    ('"Of scores."', "'''Of scores, shape (B,).\n\n    In bits.\n    '''"),
    ("'''Weights.'''", ""),
    ("  # a comment", ""),
    ("(total,", "(\n        # another\n        total,"),
    (r'(total, b"\x00", math.pi, None, ...)', r"total, b'\0', math.pi, None, ..."),
    ("weight = 1", "weight = 0x1"),
    ("tau=0.5, *, form='paper'):", 'tau=.5,\n         *, form="paper",):'),
])  # fmt: skip
def test_words_and_layout_change_no_hash(repository, old, new):
    assert changed(repository, LOSSES, CODE) == in_both(LOSSES)
    assert old in CODE
    assert changed(repository, LOSSES, CODE.replace(old, new)) == set()


@pytest.mark.parametrize(("old", "new"), [
    ("tau=0.5", "tau=0.25"), ("tau=0.5", "tau=None"), ("@cache\n", ""), ("weight = 1", "weight = 1.0"),
    ("weight = 1", "weight = True"), ("weight = 1", "weight = '1'"), ("weight = 1", "weight: int = 1"),
    ("weight = 1", "weights = 1"), ("None, ...", "'None', ..."), ("None, ...", "..."), (r'b"\x00"', r'"\x00"'),
    (".2f", ".3f"), ("{form!r}", "{form}"), ("list,", "tuple,"), ("math.pi", "math.e"), ("sum(scores)", "sum(*scores)"),
    (" *,", ""),
])  # fmt: skip
def test_code_changes_the_hash(repository, old, new):
    changed(repository, LOSSES, CODE)
    assert old in CODE
    assert changed(repository, LOSSES, CODE.replace(old, new, 1)) == in_both(LOSSES)


def test_hashes_are_those_of_every_version_of_python(repository):
    """Python 3.11 to 3.13 made it: a newer one has more fields (`type_params`) and knows more letters (U+1FAE9)."""
    (repository / "stages/report.py").write_text(CODE + "é = '\U0001fae9'\n", encoding="utf-8")
    stage_code._read.cache_clear()
    assert (
        dict(stage_code.lists(repository))["report"]
        == "db6a72e6a57ed820717c5c7a7fbb839dfdb26ebc09acaff1d13b9eb2fe57b944  stages/report.py\n"
    )


def test_a_package_that_does_nothing_is_not_listed(repository):
    package = "src/eadpr/search/__init__.py"
    (repository / package).parent.mkdir()
    (repository / package).touch()
    changed(repository, "src/eadpr/training/loop.py", "import eadpr.search\n")
    assert changed(repository, package, '"""All of it."""  # empty\n') == set()
    assert changed(repository, package, "import os\n") == in_both(package)


def test_a_data_file_that_a_module_names_is_listed_by_its_bytes(repository):
    forms = "src/eadpr/training/forms.toml"
    assert changed(repository, forms, "a = 1") == set()
    changed(repository, LOSSES, 'Path(__file__).with_name("forms.toml")\n')
    assert changed(repository, forms, "a  = 1") == in_both(forms)


def test_neither_telemetry_nor_its_imports_are_listed(repository):
    progress = repository / "src/eadpr/runtime/progress.py"
    progress.parent.mkdir()
    progress.write_text("import eadpr.unused\n")
    (repository / "stages/train.py").write_text("from eadpr.runtime.progress import progress\n")
    assert listed(repository)["train"] == ["stages/train.py"]


@pytest.mark.parametrize("folder", ["src", "lib/python3/site-packages"])
def test_the_key_of_kept_work_covers_a_module_and_its_imports_installed_or_not(repository, folder):
    eadpr = repository / folder / "eadpr"
    eadpr.parent.mkdir(parents=True, exist_ok=True)
    (repository / "src" / "eadpr").rename(eadpr)
    shutil.copytree(ROOT / "src" / "eadpr" / "runtime", eadpr / "runtime")

    def code() -> str:
        program = f"from eadpr.runtime import cache; print(cache.code({str(eadpr / 'training' / 'loop.py')!r}))"
        environment = os.environ | {"PYTHONPATH": str(eadpr.parent)}
        return subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=True).stdout

    first = code()
    (eadpr / "tables.py").write_text("of = 'a module that it does not import'\n")
    assert code() == first
    (eadpr / "training" / "losses.py").write_text("import cmath\n")
    assert code() != first
