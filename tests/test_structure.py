"""The shape of the project: the dependencies of stages, the direction of imports, sizes, the keys of params.yaml."""

import ast
import importlib
import itertools
import re
from typing import Any

import pytest

from eadpr.runtime import stage_code
from eadpr.runtime.stage_code import closure, imports
from eadpr.settings import names as params_names
from eadpr.settings.command import Stage
from eadpr.settings.model import Layout, Settings
from eadpr.settings.resolve import declared, load
from eadpr.settings.yaml import DEFAULTS, read_yaml
from tests import stage_table
from tests.repository import ROOT, is_code, stage_module, stage_paths, stages

ORDER = [
    "runtime", "storage", "text", "atlas", "corpus", "training", "supervision", "writers", "search", "evaluation",
    "report", "two_hops", "readers", "robustness", "explorer", "library", "settings", "studies", "publishing",
]  # fmt: skip
PIPELINE = stages()
# The stages that train and measure a retriever, and SIZES' core counts all of their modules but SOURCES.
CORE = (
    "prepare", "bm25", "positives", "annotator", "evidence", "distractors", "negatives", "examples", "base", "train",
    "encode", "retrieve", "probe", "evaluate", "report",
)  # fmt: skip
# The most lines of Python. Raising one takes a commit that begins "decision:" and says why.
SIZES = {"src": 20_500, "core": 9_940, "stages": 550, "tests": 19_000, "benchmarks": 4_000}
SOURCES = re.compile(r"corpus/|atlas/")  # readers of files and the generated collection
# What stages add to the core.
HANDED_IN = re.compile(r"two_hops/evaluate|(readers|robustness)/report|writers/evidence")
WINGS = re.compile(r"(two_hops|readers|robustness|explorer|library|settings|studies|publishing)/(?!command)")


@pytest.mark.parametrize("name", PIPELINE)
def test_a_stage_depends_on_the_list_of_its_modules_code(name):
    stage = PIPELINE[name]
    module = stage_module(stage["cmd"])
    expected = [f"data/${{collection}}/configs/code/{module}.txt"] if name != "configs" else ["src/eadpr", "stages"]
    assert [dep for dep in stage["deps"] if is_code(dep)] == expected


@pytest.mark.parametrize("name", [name for name in PIPELINE if name != "configs"])
def test_the_command_of_a_stage_finds_the_paths_that_it_declares(name):
    """`configs` writes where params.yaml says, so that no value reaches the shell before it is checked."""
    stage = PIPELINE[name]
    declared = {dep for dep in stage["deps"] if not is_code(dep)}
    for kind in ("outs", "metrics"):
        declared |= {next(iter(out)) if isinstance(out, dict) else out for out in stage.get(kind, [])}
    assert {str(path) for path in stage_paths(stage["cmd"]).values() if path} == declared
    assert stage["desc"]


@pytest.mark.parametrize("path", sorted((ROOT / "stages").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_the_code_of_a_stage_holds_the_classes_of_its_sections(path):
    """They are looked up by name, which the list of code does not follow: what uses them imports them."""
    main = importlib.import_module(f"stages.{path.stem}").main
    if isinstance(main, Stage):
        modules = {params_names.GIVEN[name].split(":")[0] for name in main.sections()}
        files = {ROOT / "src" / f"{module.replace('.', '/')}.py" for module in modules}
        assert files <= set(closure(path, ROOT))


def test_the_documented_stages_are_those_of_the_pipeline():
    document = stage_table.DOCUMENT.read_text(encoding="utf-8")
    assert document == stage_table.rewritten(document), "run python -m tests.stage_table"


def test_imports_go_one_way():
    """Downward in ORDER, so that there is no circle among the rooms either."""
    rooms = ROOT / "src" / "eadpr"
    assert {path.name for path in rooms.iterdir() if (path / "__init__.py").exists()} == set(ORDER)
    wrong = []
    for position, room in enumerate(ORDER):
        for path in (rooms / room).rglob("*.py"):
            for target in imports(path, ROOT):
                if target.is_relative_to(rooms) and target.relative_to(rooms).parts[0] in ORDER[position + 1 :]:
                    wrong.append(f"{path.relative_to(ROOT)} -> {target.relative_to(ROOT)}")
    assert wrong == []


def test_the_core_path_is_short_and_knows_nothing_of_what_is_built_on_it():
    folder = ROOT / "src" / "eadpr"
    reached, todo = set(), [ROOT / "stages" / f"{stage}.py" for stage in CORE]
    while todo:
        if (path := todo.pop()) not in reached and not HANDED_IN.search(path.as_posix()):
            reached.add(path)
            todo += imports(path, ROOT)
    modules = {
        path.relative_to(folder).as_posix() for path in reached if folder in path.parents and path.stat().st_size
    }
    core = {name for name in modules if name.endswith(".py") and not SOURCES.match(name)} - {"__init__.py"}
    assert {name for name in core if WINGS.search(name)} == set()
    assert count_lines(folder / name for name in core) <= SIZES["core"]


def count_lines(paths) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


@pytest.mark.parametrize(("stage", "module"), [
    ("evidence", "training/loop.py"), ("near_duplicates", "training/encoder.py"), ("bm25", "runtime/machine.py"),
    ("positives", "runtime/machine.py"), ("evaluate", "runtime/machine.py"), ("probe", "evaluation/metrics.py"),
    ("read", "training/loop.py"), ("retrieve_multihop", "training/batches.py"),
])  # fmt: skip
def test_what_cannot_change_a_stage_does_not_rerun_it(stage, module):
    assert ROOT / "src" / "eadpr" / module not in closure(ROOT / "stages" / f"{stage}.py", ROOT)


def test_what_import_eadpr_offers_is_code_of_no_stage():
    """Nor does any stage's list hold the file itself, so that a further name reruns nothing."""
    assert imports(ROOT / "src" / "eadpr" / "__init__.py", ROOT) == ()
    assert "src/eadpr/__init__.py" not in stage_code.listed(ROOT / "stages" / "train.py", ROOT)


@pytest.mark.parametrize("name", [name for name in PIPELINE if name != "configs"])
def test_no_other_stage_reaches_the_modules_of_params(name):
    """It would rerun whenever one of them is edited."""
    module = ROOT / "stages" / f"{stage_module(PIPELINE[name]['cmd'])}.py"
    reached = {path.name for path in closure(module, ROOT) if path.parent.name == "settings"}
    assert reached == {"command.py"}


def test_every_file_of_data_is_named_by_a_module_beside_it():
    """Else no list of code would hold it. Types are for those who use the library."""
    for path in (ROOT / "src" / "eadpr").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc", ".pyi", ".typed"):
            assert any(path in imports(module, ROOT) for module in path.parent.glob("*.py")), path


def test_params_hold_what_people_set_and_the_defaults_all_else():
    """So that `dvc exp show` has few columns and a key has one default."""
    params, defaults = (flat(read_yaml(path)) for path in (ROOT / "params.yaml", DEFAULTS))
    assert set(params) & set(defaults) <= {"arms", "collections"}
    assert len(params) <= 60
    lines = (ROOT / "params.yaml").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100] == []


def flat(values: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names of all values that are no mappings, or empty ones."""
    nested = [
        flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else [prefix + key]
        for key, value in values.items()
    ]
    return [name for names in nested for name in names]


def test_every_section_of_params_is_used_and_known():
    assert set(load(ROOT / "params.yaml")) == set(Settings.model_fields) | set(Layout.model_fields)
    used = {name for names in declared().values() for name in names}
    assert set(Settings.model_fields) - {"path_reader"} <= used == set(params_names.GIVEN)


@pytest.mark.parametrize("file", [ROOT / "params.yaml", DEFAULTS], ids=lambda path: path.name)
def test_every_key_of_params_has_a_comment(file):
    """It stands on the key's line or right above it, the keys of a section on one line by name."""
    lines = file.read_text(encoding="utf-8").splitlines()
    section, bare = "", []
    for number, line in enumerate(lines):
        if match := re.match(r"(\w+):", line):
            section = match[1]
        if section not in Settings.model_fields:
            continue
        if line.startswith(f"{section}: {{"):
            values, _, remark = " ".join(lines[number : number + 2]).partition("}")
            above = itertools.takewhile(lambda text: text.startswith("#"), reversed(lines[:number]))
            words = " ".join([*above, remark])
            keys = re.findall(r"(\w+):", values)[1:]
            bare += [f"{section}.{key}" for key in keys if not re.search(rf"\b{key}\b", words)]
        elif re.match(r"\s+[\w]+:", line) and lines[number - 1].count("{") == lines[number - 1].count("}"):
            explained = "#" in line or lines[number - 1].lstrip().startswith("#")
            if not explained:
                bare.append(f"{number + 1}: {line}")
    assert bare == []


@pytest.mark.parametrize("folder", [folder for folder in SIZES if folder != "core"])
def test_a_folder_keeps_its_size(folder):
    assert count_lines((ROOT / folder).rglob("*.py")) <= SIZES[folder]


def test_modules_and_functions_are_short_and_every_class_has_a_name_of_its_own():
    classes: dict[str, list[str]] = {}
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "stages").glob("*.py")]):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 300, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 50, f"{path}: {node.name}"
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: paths for name, paths in classes.items() if len(paths) > 1} == {}
