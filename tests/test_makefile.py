"""What `make` does besides calling the tools that have tests of their own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name as canonical

from tests.repository import ROOT

KINDS = ("product", "torch", "test", "docs", "audit")  # a lock file has what comes on top of the one before


@pytest.mark.parametrize(("content", "age", "remains"), [("", 60, False), ("", 0, True), ("{}", 60, True)])
def test_an_empty_lock_file_of_dvc_is_removed_unless_it_is_being_written(tmp_path, content, age, remains):
    """DVC writes it in place, so a kill can leave it empty, and no command can read it then."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    lock = tmp_path / ".dvc" / "tmp" / "rwlock"
    lock.parent.mkdir(parents=True)
    lock.write_text(content)
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - age))
    subprocess.run(["make", "unlock"], cwd=tmp_path, check=True)
    assert lock.exists() == remains


def pins(name: str) -> dict[str, str]:
    """Package to version, of the lines `package==1.2 \\` of a file and of those that it names with -r."""
    versions = {}
    for line in (ROOT / name).read_text().splitlines():
        if line.startswith("-r "):
            versions |= pins(os.path.normpath(Path(name).parent / line.removeprefix("-r ")))
        elif "==" in line and not line.startswith("#"):
            package, version = line.split()[0].split("==")
            versions[canonical(package.partition("[")[0])] = version
    return versions


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_installed_by_hash_are_the_versions_that_are_pinned(kind):
    locked = {}
    for earlier in KINDS[: KINDS.index(kind) + 1]:
        locked |= pins(f"requirements/{earlier}.lock")
    assert locked.items() <= pins("constraints.txt").items()
    required = pins("requirements.txt" if kind in ("product", "torch") else f"requirements/{kind}.txt")
    assert required.keys() - locked.keys() <= ({"torch"} if kind == "product" else set())
    assert required.items() <= pins("constraints.txt").items()


def test_every_package_of_a_lock_file_has_a_hash():
    assert pins("requirements/torch-cpu.lock") == {"torch": f"{pins('requirements.txt')['torch']}+cpu"}
    for lock in ROOT.glob("requirements/*.lock"):
        bare = [line for line in lock.read_text().splitlines() if not line.endswith("\\") and "--hash=" not in line]
        assert len(bare) == 1, f"{lock.name}: {bare}"  # the comment at the top
