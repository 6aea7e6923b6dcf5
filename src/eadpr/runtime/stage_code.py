"""Lists of the code that a stage depends on: the files of this repository that it imports, with a hash of each.

DVC reruns a stage when its list, written by `configs`, changes, and a killed stage resumes only from work of the same
code (`cache.code`). The hash is of the syntax tree, so that better words, a comment or a line break rerun nothing.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TOPS = ("eadpr", "stages")  # packages in src or in the repository's root
# No list names these files, because they decide no byte: telemetry and the names for users.
UNLISTED = ("eadpr/runtime/progress.py", "src/eadpr/__init__.py")


def lists(root: Path = Path()) -> Iterator[tuple[str, str]]:
    """Yield the name of each module of stages/ and its list."""
    for path in sorted((root / "stages").glob("[!_]*.py")):
        yield path.stem, listed(path, root)


def listed(path: Path, root: Path) -> str:
    """Return a line `<sha256>  <path>` for each file of the `closure` of `path`."""
    return "".join(f"{_read(file, root)[0]}  {file.relative_to(root).as_posix()}\n" for file in closure(path, root))


def closure(path: Path, root: Path) -> list[Path]:
    """Return `path` and all files that it reaches, without UNLISTED and files without code (an empty `__init__.py`)."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen and not file.as_posix().endswith(UNLISTED):
            seen.add(file)
            todo.extend(imports(file, root))
    return sorted(file for file in seen if _read(file, root)[0] != NOTHING)


def imports(path: Path, root: Path) -> tuple[Path, ...]:
    return _read(path, root)[1]


@cache
def _read(path: Path, root: Path) -> tuple[str, tuple[Path, ...]]:
    """Return the hash of a file, and the files that it imports, inside functions too, or names in its folder."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest(), ()
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    data_files = {file.name: file for file in path.parent.iterdir() if file.suffix != ".py" and file.is_file()}
    imported: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            if isinstance(node, ast.Constant) and node.value in data_files:
                imported.add(data_files[node.value])
            continue
        imported |= {file for name in names for file in _files(name, root)}
    return hashlib.sha256(_text(tree).encode()).hexdigest(), tuple(sorted(imported - {path}))


@cache
def _files(module: str, root: Path) -> tuple[Path, ...]:
    """Return the files that an import runs, `__init__` of its packages included; none for other libraries."""
    parts = module.split(".")
    if parts[0] not in TOPS:
        return ()
    paths = [top.joinpath(*parts[:length]) for length in range(1, len(parts) + 1) for top in (root / "src", root)]
    return tuple(file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


def _text(node: object) -> str:
    """Write a syntax tree without docstrings as text, the same for every version of Python: newer ones have more empty
    fields, which are omitted, and count more letters as printable, which are escaped."""
    if isinstance(node, ast.AST):
        fields = ((name, _text(value)) for name, value in ast.iter_fields(node))
        filled = ",".join(f"{name}={text}" for name, text in fields if text not in ("[]", "None"))
        return f"{type(node).__name__}({filled})"
    if isinstance(node, list):
        return f"[{','.join(_text(item) for item in node if not _is_docstring(item))}]"
    return ascii(node)


def _is_docstring(node: object) -> bool:
    """Recognise a string that stands alone: at most it becomes `__doc__`, which only `--help` reads."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


NOTHING = hashlib.sha256(b"Module()").hexdigest()  # of a file without code
