"""What the code of a stage does: the files of this repository that it runs, with a hash of each.

DVC reruns a stage when its list, made by `configs`, changes, and a killed stage goes on only from work of the same code
(`cache.code`). A hash is of what Python reads in a file, so that better words, a comment or a line break rerun nothing.

One dependency per stage instead of one per module: DVC reads and rewrites dvc.lock after every stage, and an entry for
each of a stage's forty modules made that the longest part of a run with little to do.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOPS = ("eadpr", "stages")  # found in the folder src or beside it
# They decide no byte (tests/test_telemetry.py), so no list names them: telemetry, and the names for users.
UNLISTED = ("eadpr/runtime/progress.py", "eadpr/runtime/runs.py", "src/eadpr/__init__.py")


def lists(root: Path = Path()) -> Iterator[tuple[str, str]]:
    """For each module of stages/: its name, and its list."""
    for path in sorted((root / "stages").glob("[!_]*.py")):
        yield path.stem, listed(path, root)


def listed(path: Path, root: Path) -> str:
    """A line `<sha256>  <path>` for each file of the `closure` of `path`, itself included."""
    return "".join(f"{_read(file, root)[0]}  {file.relative_to(root).as_posix()}\n" for file in closure(path, root))


def closure(path: Path, root: Path) -> list[Path]:
    """`path` and all it reaches, without UNLISTED and files that do nothing, such as an empty `__init__.py`."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen and not file.as_posix().endswith(UNLISTED):
            seen.add(file)
            todo.extend(imports(file, root))
    return sorted(file for file in seen if _read(file, root)[0] != _NOTHING)


def imports(path: Path, root: Path) -> tuple[Path, ...]:
    """Files of the repository imported anywhere in `path`, inside functions too, and files of data beside it that it
    names."""
    return _read(path, root)[1]


@cache
def _read(path: Path, root: Path) -> tuple[str, tuple[Path, ...]]:
    """The hash of a file, and what it imports."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest(), ()
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    beside = {file.name: file for file in path.parent.iterdir() if file.suffix != ".py" and file.is_file()}
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}:{node.lineno}: relative import; write the module's full name")
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            if isinstance(node, ast.Constant) and node.value in beside:
                found.add(beside[node.value])
            continue
        found |= {file for name in names for file in _files(name, root)}
    return _hash(tree), tuple(sorted(found - {path}))


@cache
def _files(module: str, root: Path) -> tuple[Path, ...]:
    """The files that importing it runs, those of its packages too; none for a module from elsewhere."""
    parts = module.split(".")
    if parts[0] not in TOPS:
        return ()
    paths = [top.joinpath(*parts[:length]) for length in range(1, len(parts) + 1) for top in (root / "src", root)]
    named = [file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py")]
    return tuple(file for file in named if file.is_file())


def _hash(tree: ast.Module) -> str:
    return hashlib.sha256(_text(tree).encode()).hexdigest()


def _text(node: object) -> str:
    """A syntax tree without docstrings, the same text in every version of Python: what is empty is left out, because a
    newer version has more fields, and letters are escaped, because it knows more that can be printed."""
    if isinstance(node, ast.AST):
        fields = ((name, _text(value)) for name, value in ast.iter_fields(node))
        held = ",".join(f"{name}={text}" for name, text in fields if text not in ("[]", "None"))
        return f"{type(node).__name__}({held})"
    if isinstance(node, list):
        return f"[{','.join(_text(one) for one in node if not _is_docstring(one))}]"
    return ascii(node)


def _is_docstring(node: object) -> bool:
    """Any string that stands alone: Python keeps it as `__doc__` at most, which `--help` alone reads."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


_NOTHING = _hash(ast.Module([], []))
