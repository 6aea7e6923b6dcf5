"""Which files of this repository each stage imports. DVC reruns a stage when its list, made by `configs`, changes.

One dependency per stage instead of one per module: DVC reads and rewrites dvc.lock after every stage, and an entry for
each of a stage's forty modules made that the longest part of a run with little to do.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOPS = {"eadpr": Path("src"), "stages": Path()}


def lists(root: Path = Path()) -> Iterator[tuple[str, str]]:
    """For each module of stages/: its name, and a line `<sha256>  <path>` for each file it imports, itself included."""
    for path in sorted((root / "stages").glob("[!_]*.py")):
        lines = (
            f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(root).as_posix()}\n"
            for file in closure(path, root)
        )
        yield path.stem, "".join(lines)


def closure(path: Path, root: Path) -> list[Path]:
    """`path` and all it reaches, without empty `__init__.py` files."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(imports(file, root))
    return sorted(file for file in seen if file.stat().st_size)


@cache
def imports(path: Path, root: Path) -> tuple[Path, ...]:
    """Files of the repository imported anywhere in `path`, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}:{node.lineno}: relative import; write the module's full name")
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {file for name in names for file in _files(name, root)}
    return tuple(sorted(found - {path}))


def _files(module: str, root: Path) -> Iterator[Path]:
    """The files that importing it runs, those of its packages too; none for a module from elsewhere."""
    parts = module.split(".")
    if parts[0] not in TOPS:
        return
    for length in range(1, len(parts) + 1):
        path = root / TOPS[parts[0]].joinpath(*parts[:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file
