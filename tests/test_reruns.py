"""A killed stage whose code is edited before it is run again starts anew."""

import pytest

from eadpr.runtime import files
from tests import forked_python
from tests.killed_and_edited import CASES


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    done = forked_python.python("-m", "tests.killed_and_edited", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{case.stage}-{case.edited}" for case in CASES])
def test_killed_and_edited_it_ends_with_the_bytes_of_an_undisturbed_run_of_the_new_code(made, number):
    before, again, whole = (files.tree_sha256(made / str(number) / run) for run in ("before", "again", "whole"))
    assert before != whole, "the edit changes nothing"
    assert again == whole
