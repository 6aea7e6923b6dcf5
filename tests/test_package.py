"""What is published: wheel and sdist as they are installed elsewhere, and the versions that they ask for."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from ruamel.yaml import YAML

import eadpr
from eadpr import __main__
from tests.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILD = "from setuptools import build_meta as made; print(made.build_wheel(OUT), made.build_sdist(OUT))"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with both, built of a copy: building leaves folders beside the sources."""
    out, tree = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    subprocess.run([sys.executable, "-c", BUILD.replace("OUT", repr(str(out)))], cwd=tree, check=True)
    return out


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The bin of an environment with the wheel alone; a path lends it this one's libraries, but no editable ones."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps"]
    (wheel,) = built.glob("*.whl")
    subprocess.run([*pip, "--no-index", "--no-compile", wheel], check=True)
    return folder / "bin"


def ran(command: list, cwd: Path, **variables: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


USED = """
import sys

EXTRAS = MISSING

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import torch, eadpr
assert eadpr.__file__.startswith(sys.prefix), eadpr.__file__
assert all(getattr(eadpr, name) for name in eadpr.__all__ if name != "AwarenessEvaluator")
terms = eadpr.evidence_loss(torch.tensor([[2.0, 1.0, 0.0, 9.0], [0.0, 3.0, 9.0, 9.0]]), torch.tensor([True, False]))
row = {"question": "Where was Ada born?", "answers": ["London"], "text": "Ada was born in London. She wrote it."}
(made,) = eadpr.distractors([row])
print(eadpr.__version__, round(terms.total.item(), 4), made.variants["distractor"])
"""


@pytest.mark.nightly
def test_the_wheel_works_alone(installed, tmp_path):
    light, extra = (
        {requirement.name for requirement in map(Requirement, lines)}
        for lines in (PROJECT["optional-dependencies"]["awareness"], PROJECT["optional-dependencies"]["pipeline"])
    )
    extra -= light | {"eadpr", "urllib3"}  # which comes with requests
    missing = [module for module, packages in packages_distributions().items() if not extra.isdisjoint(packages)]
    assert {"dvc", "pyserini", "faiss", "ruamel"} < set(missing)
    missing += ["sentence_transformers", "datasets", "ray"]
    done = ran([installed / "python", "-c", USED.replace("MISSING", str(missing))], tmp_path)
    assert done.stdout == f"{PROJECT['version']} 1.6683 She wrote it.\n", done.stderr


def test_the_command_gathers_what_users_call(installed, tmp_path):
    help_text = ran([installed / "eadpr", "--help"], tmp_path).stdout
    assert set(__main__.COMMANDS) == set(re.findall(r"(?m)^│ ([a-z][a-z-]+)  ", help_text.partition("─╯")[2]))
    assert ran([installed / "eadpr", "--version"], tmp_path).stdout == f"{PROJECT['version']}\n"
    assert "Usage: eadpr search " in ran([installed / "eadpr", "search", "--help"], tmp_path).stdout
    done = ran([installed / "eadpr", "study", "--show", "x"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no params.yaml here; run this in the folder of the project")
    words = {"COMP_WORDS": "eadpr prob", "COMP_CWORD": "1", "_EADPR_COMPLETE": "complete_bash"}
    assert ran([installed / "eadpr"], tmp_path, **words).stdout.split() == ["probe-model"]


def test_a_library_that_is_not_installed_is_named_with_its_extra(monkeypatch, capsys):
    def missing(_: object) -> None:
        raise ModuleNotFoundError("No module named 'ruamel.yaml'", name="ruamel.yaml")

    monkeypatch.setattr(__main__.user_command, "run", missing)
    for name, extra in (("describe", "pipeline"), ("demo", "awareness")):
        monkeypatch.setattr(sys, "argv", ["eadpr", name])
        with pytest.raises(SystemExit, match=rf"error: ruamel is not installed; it comes .* 'eadpr\[{extra}\]'"):
            __main__.main()
    monkeypatch.setattr(sys, "argv", ["eadpr", "--help"])
    monkeypatch.setattr(__main__.pkgutil, "resolve_name", missing)
    with pytest.raises(SystemExit, match="0"):
        __main__.main()
    assert re.search(r"│ status +ruamel is not installed; [^']+'eadpr\[pipeline\]'", capsys.readouterr().out)
    monkeypatch.setattr(eadpr.importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"eadpr.point needs ruamel, .*; pip install 'eadpr\[awareness\]'"):
        _ = eadpr.point


def test_wheel_and_sdist_hold_the_types_and_all_modules(built):
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    expected = {line.removeprefix("src/") for line in tracked.stdout.splitlines()}
    assert {"eadpr/py.typed", "eadpr/__init__.pyi"} <= expected <= names
    assert {name for name in names if not name.partition("/")[0].endswith(".dist-info")} == expected
    with tarfile.open(source) as archive:
        assert {f"eadpr-{PROJECT['version']}/{line}" for line in tracked.stdout.splitlines()} <= set(archive.getnames())


def requirements(name: str) -> dict[str, Requirement]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return {pin.name: pin for line in lines if line and not line.startswith("-") for pin in [Requirement(line)]}


@pytest.mark.parametrize(("extras", "file"), [
    (("", "awareness", "pipeline"), "requirements.txt"), (("gpu",), "requirements/gpu.txt"),
    (("ray",), "requirements/ray.txt"),
])  # fmt: skip
def test_the_pins_of_the_pipeline_lie_in_the_ranges(extras, file):
    """They are the same libraries, so that what the pipeline is tested with is what others may install."""
    ranges = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    required = {requirement.name: requirement for extra in extras for requirement in map(Requirement, ranges[extra])}
    pins = requirements(file)
    assert required.keys() - {"eadpr"} == set(pins)
    for name, pin in pins.items():
        (exact,) = pin.specifier
        assert (exact.operator, exact.version in required[name].specifier) == ("==", True), name


def test_a_release_has_one_version():
    cited = YAML(typ="safe", pure=True).load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == PROJECT["version"]
    assert f"## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_container_is_made_of_what_is_there():
    """A misspelt instruction, file or target would show only on other machines where it cannot be built."""
    folder, makefile = ROOT / ".devcontainer", (ROOT / "Makefile").read_text(encoding="utf-8")
    container = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))
    assert (folder / container["build"]["context"]).samefile(ROOT)
    text = (folder / container["build"]["dockerfile"]).read_text(encoding="utf-8")
    instructions = re.findall(r"(?m)^([^#\s]+) (\S+)", text)
    assert re.search("(?m)^FROM (python.*)-slim", text)[1].replace(":", "") in makefile
    assert {name for name, _ in instructions} <= {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "CMD"}
    assert all((ROOT / source).exists() for name, source in instructions if name == "COPY")
    targets = re.findall(r'make"?,? "?([a-z-]+)', text + container["postCreateCommand"])
    assert {"repro"} <= {*targets} <= {*re.findall("(?m)^([a-z-]+):", makefile)}
    ignored = ["git", "ls-files", "--cached", "--ignored", "--exclude-from=.dockerignore"]
    assert subprocess.run(ignored, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""
