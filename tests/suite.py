"""Run a part of the tests: python -m tests.suite core | changed | all [options of pytest].

core: every test without a wing's mark. changed: the tests of the wings with other code or tests than tests/wings.lock
records, which is where a wing's tests last passed. all: everything, the nightly tests too.
"""

import ast
import hashlib
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from eadpr.runtime import stage_code
from tests.repository import ROOT

WINGS = (
    "formats", "two_hops", "readers", "robustness", "writers", "explorer", "library", "studies", "publishing",
    "benchmarks",
)  # fmt: skip
LOCK = Path("tests/wings.lock")
PYTEST = (
    *(sys.executable, "-m", "pytest", "--numprocesses", "auto", "--maxprocesses", "4"),
    *("--dist", "loadfile", "--no-loadscope-reorder"),
)  # fmt: skip
CORE = f"not nightly and not ({' or '.join(WINGS)})"


def fingerprint(wing: str, root: Path = ROOT) -> str:
    """Hash the tests of a wing and all code of src/ and stages/ that they and the wing's package import.

    A test that runs the pipeline reaches code through DVC, so it also counts dvc.yaml, params.yaml and every stage.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "tests").glob("*.py"))}
    tests = [path for path, text in texts.items() if re.search(rf"\bmark\.{wing}\b", text)]
    files = {*tests, *(root / "src" / "eadpr" / wing).rglob("*.py"), *(root / wing).rglob("*.py")}
    files |= {helper for test in tests for helper in _helpers(test, root)}
    settings: list[Path] = []
    if any("mark.pipeline" in texts[test] for test in tests):
        files |= set((root / "stages").glob("*.py"))
        settings = [root / "dvc.yaml", root / "params.yaml"]
    lines = {line for file in files for line in stage_code.listed(file, root).splitlines()}
    digest = hashlib.sha256("\n".join(sorted(lines)).encode())
    for path in settings:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def changed(root: Path = ROOT) -> dict[str, str]:
    """Return the fingerprints of the wings that differ from the lock, in the order of WINGS."""
    recorded = _recorded(root)
    fingerprints = {wing: fingerprint(wing, root) for wing in WINGS}
    return {wing: new for wing, new in fingerprints.items() if recorded.get(wing) != new}


def record(fingerprints: dict[str, str], root: Path = ROOT) -> None:
    """Write the fingerprints of wings whose tests passed into the lock, and keep those of the others."""
    recorded = _recorded(root) | fingerprints
    (root / LOCK).write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(part: str, options: list[str]) -> int:
    if part == "core":
        return run(["-m", CORE, *options])
    if part == "all":
        fingerprints, expression = {wing: fingerprint(wing) for wing in WINGS}, []
    elif fingerprints := changed():
        expression = ["-m", f"not nightly and ({' or '.join(fingerprints)})"]
    else:
        print("no wing changed since its tests last passed (tests/wings.lock)")
        return 0
    print("wings:", *fingerprints, flush=True)
    code = run([*expression, *options])
    if code == 0:
        record(fingerprints)
    return code


def run(options: list[str]) -> int:
    return subprocess.run([*PYTEST, *options], cwd=ROOT, check=False).returncode


def _recorded(root: Path) -> dict[str, str]:
    lock = root / LOCK
    return json.loads(lock.read_text(encoding="utf-8")) if lock.exists() else {}


@cache
def _helpers(path: Path, root: Path) -> frozenset[Path]:
    """Return the modules of tests/ that a module there imports, directly or through others."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "tests":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            names.add(node.module.split(".")[1])
    files = {file for name in names if (file := root / "tests" / f"{name}.py").exists()} - {path}
    return frozenset(files.union(*(_helpers(file, root) for file in files)))


if __name__ == "__main__":
    if sys.argv[1:2] not in (["core"], ["changed"], ["all"]):
        sys.exit(f"usage: {__doc__}")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
