"""What the mutants of a module are, and that they are what is run."""

import ast

import pytest

from benchmarks import mutants

pytestmark = pytest.mark.nightly

SOURCE = '''"""Words, not 1."""
def f(a: int = 3) -> bool:
    if a <= 2 and a in (5, True):
        return -a + 1
    return max(a, not a)
'''


def test_each_change_is_one_operator_constant_condition_or_return():
    assert sorted(one.said for one in mutants.mutants(SOURCE)) == sorted([
        "3 -> 4", "2 -> 3", "5 -> 6", "1 -> 2", "True -> False", "a <= 2 -> a < 2", "-a -> +a",
        "a in (5, True) -> a not in (5, True)", "a <= 2 and a in (5, True) -> a <= 2 or a in (5, True)",
        "-a + 1 -> -a - 1", "not a -> not not a",
        "max(a, not a) -> min(a, not a)", "return -a + 1 -> return None", "return max(a, not a) -> return None",
        "if a <= 2 and a in (5, True): -> if not (a <= 2 and a in (5, True)):",
    ])  # fmt: skip


def test_a_mutant_differs_in_one_place_alone():
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for one in mutants.mutants(SOURCE):
        made = ast.unparse(mutants.mutated(SOURCE, one.number)).splitlines()
        assert sum(old != new for old, new in zip(plain, made, strict=True)) == 1, one.said


def test_a_mutant_is_what_the_tests_meet(tmp_path):
    (tmp_path / "met_here.py").write_text("def f(a):\n    return a + 1\n")
    test = tmp_path / "test_it.py"
    found_from = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport met_here\n"
    test.write_text(f"{found_from}def test_it():\n    assert met_here.f(2) == 3\n")
    found = {number: mutants.caught(tmp_path / "met_here.py", number, [str(test)], 60) for number in (None, 0, 1, 2)}
    assert found == {None: False, 0: True, 1: True, 2: True}
