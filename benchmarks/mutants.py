"""Would a test notice? One operator, constant, condition or return of a module is changed at a time, and the tests that
are for the module are run: `python -m benchmarks.mutants --only files,cache --share 0.3`.

Each mutant has a process of its own, forked with the heavy libraries imported. It is caught where a test fails or the
tests take too long; processes that tests start meet the module unchanged.
"""

import ast
import importlib
import importlib.machinery
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

ROOT = Path(__file__).resolve().parents[1]
# By name: the module below src/eadpr, and the tests that are for it below tests/test_.
MODULES = {
    "losses": ("training/losses", "losses"),
    "masks": ("training/batches", "batches"),
    "spans": ("supervision/spans", "spans"),
    "text": ("text/answers", "text"),
    "metrics": ("evaluation/metrics", "metrics evaluate"),
    "grades": ("storage/grades", "metrics"),
    "statistics": ("evaluation/statistics", "statistics differences"),
    "files": ("runtime/files", "files"),
    "cache": ("runtime/cache", "cache files"),
}
HEAVY = ("torch", "transformers", "pyarrow.parquet", "duckdb", "hypothesis", "pytest")
SLOWER = 4  # times as long as unchanged the tests may take, and
PATIENCE = 20.0  # seconds more
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.Pow: ast.Mult, ast.LShift: ast.RShift,
}  # fmt: skip
FUNCTIONS = {"sorted": "list", "min": "max", "max": "min", "any": "all", "all": "any"}
Change = Callable[[], None]


class Mutant(NamedTuple):
    """`number` counts the changes of the module that there are."""

    number: int
    line: int
    said: str


class Score(NamedTuple):
    module: str
    mutants: int
    survivors: list[Mutant]


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, Change]]:
    """What may be changed, in the order of the walk."""
    left_out = {id(inner) for node in ast.walk(tree) for part in _unseen(node) for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) not in left_out and (change := _change(node)):
            yield node, change


def _unseen(node: ast.AST) -> list[ast.AST]:
    """Types, which decide nothing."""
    found: list[Any] = [node.annotation] if isinstance(node, ast.AnnAssign | ast.arg) else []
    found += [node.returns] if isinstance(node, ast.FunctionDef) else []
    return [one for one in found if one is not None]


def _change(node: ast.AST) -> Change | None:
    def put(name: str, value: Any) -> Change:
        return lambda: setattr(node, name, value)

    match node:
        case ast.Compare(ops=[first, *rest]) if type(first) in COMPARISONS:
            return put("ops", [COMPARISONS[type(first)](), *rest])
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OPERATORS:
            return put("op", OPERATORS[type(node.op)]())
        case ast.BoolOp():
            return put("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            return put("operand", ast.UnaryOp(ast.Not(), node.operand))
        case ast.UnaryOp(op=ast.USub()):
            return put("op", ast.UAdd())
        case ast.Constant(value=bool()):
            return put("value", not node.value)
        case ast.Constant(value=int() | float()):
            return put("value", node.value + 1)
        case ast.If() | ast.IfExp() | ast.While():
            return put("test", ast.UnaryOp(ast.Not(), node.test))
        case ast.Return(value=ast.AST()) if not isinstance(node.value, ast.Constant):
            return put("value", ast.Constant(None))
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS and not node.keywords:
            return put("func", ast.Name(FUNCTIONS[name], ast.Load()))
    return None


def mutants(source: str) -> list[Mutant]:
    found = []
    for number, (node, change) in enumerate(changes(ast.parse(source))):
        before = ast.unparse(node).partition("\n")[0]
        change()
        after = ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
        found.append(Mutant(number, node.lineno, f"{before[:60]} -> {after[:60]}"))
    return found


def mutated(source: str, number: int) -> ast.Module:
    tree = ast.parse(source)
    list(changes(tree))[number][1]()
    return ast.fix_missing_locations(tree)


def caught(path: Path, number: int | None, tests: list[str], seconds: float) -> bool:
    """Whether the tests fail in a process where the file is its mutant; with None unchanged."""
    if not (process := os.fork()):
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os._exit(_tested(path, number, tests))
    began = time.monotonic()
    while not (ended := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() - began > seconds:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return True
        time.sleep(0.05)
    return ended[1] != 0


def _tested(path: Path, number: int | None, tests: list[str]) -> int:
    import pytest

    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> Any:
        if number is None or Path(loader.path) != path:
            return plain(loader, name)
        return compile(mutated(path.read_text("utf-8"), number), str(path), "exec")

    importlib.machinery.SourceFileLoader.get_code = get_code
    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])


def measured(name: str, share: float, rng: random.Random) -> Score:
    module, named = MODULES[name]
    path = ROOT / "src" / "eadpr" / f"{module}.py"
    tests = [str(ROOT / "tests" / f"test_{one}.py") for one in named.split()]
    began = time.monotonic()
    if caught(path, None, tests, 600):
        raise RuntimeError(f"the tests of {name} fail as they are")
    seconds = SLOWER * (time.monotonic() - began) + PATIENCE
    every = mutants(path.read_text("utf-8"))
    drawn = sorted(rng.sample(every, max(1, round(share * len(every)))))
    survivors = []
    for mutant in drawn:
        if not caught(path, mutant.number, tests, seconds):
            survivors.append(mutant)
            print(f"{path.relative_to(ROOT)}:{mutant.line}: {mutant.said}", file=sys.stderr, flush=True)
    return Score(name, len(drawn), survivors)


def table(scores: list[Score]) -> str:
    rows = [(one.module, one.mutants, len(one.survivors)) for one in scores]
    rows.append(("**all**", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = [f"| {name} | {count:,} | {left:,} | {1 - left / count:.0%} |" for name, count, left in rows]
    return "\n".join(["| module | mutants | survive | score |", "|---|--:|--:|--:|", *lines])


def main(
    only: str = typer.Option(",".join(MODULES), help="Modules."),
    share: float = typer.Option(1.0, min=0.001, max=1.0, help="Part of the mutants, drawn by the seed."),
    seed: int = typer.Option(0, help="Draws the mutants."),
) -> None:
    for library in HEAVY:
        importlib.import_module(library)
    rng = random.Random(seed)
    typer.echo(table([measured(name, share, rng) for name in only.split(",")]))


if __name__ == "__main__":
    typer.run(main)
