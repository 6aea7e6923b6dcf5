"""Which files of this repository a stage really imports, and dvc.yaml kept in step with it.

`python -m tests.code_deps` rewrites the code entries (src/..., stages/...) in the deps of every stage of dvc.yaml;
tests/test_structure.py fails where they differ.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _file(module: str) -> Path | None:
    """The file of a module of this repository; None for a module from elsewhere or a name inside a module."""
    top = ROOT / "src" if module.split(".")[0] == "eadpr" else ROOT
    if module.split(".")[0] not in ("eadpr", "stages"):
        return None
    path = top.joinpath(*module.split("."))
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    return path / "__init__.py" if (path / "__init__.py").is_file() else None


@cache
def imports(path: Path) -> tuple[Path, ...]:
    """Files imported anywhere in `path`, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {file for name in names if (file := _file(name))}
    return tuple(sorted(found - {path}))


def closure(path: Path) -> list[str]:
    """`path` and all it reaches, relative to the repository, without empty `__init__.py` files."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(imports(file))
    return sorted(f.relative_to(ROOT).as_posix() for f in seen if f.read_text(encoding="utf-8").strip())


def stage_module(command: str) -> str:
    return re.search(r"-m stages\.(\w+)", command)[1]


def is_code(dep: str) -> bool:
    return dep.startswith(("src/", "stages/"))


def stages() -> dict[str, dict]:
    """The stages of dvc.yaml by name, `foreach` unwrapped."""
    from ruamel.yaml import YAML

    pipeline = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    return {name: stage.get("do", stage) for name, stage in pipeline["stages"].items()}


def rewrite() -> None:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=2, offset=0)
    pipeline = yaml.load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    for stage in pipeline["stages"].values():
        body = stage.get("do", stage)
        code = closure(_file(f"stages.{stage_module(body['cmd'])}"))
        body["deps"][:] = [dep for dep in body["deps"] if not is_code(dep)] + code
    with (ROOT / "dvc.yaml").open("w", encoding="utf-8") as file:
        yaml.dump(pipeline, file)


if __name__ == "__main__":
    rewrite()
