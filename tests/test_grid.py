"""Grids of a study: means over trainings, tables, the picture."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eadpr.evaluation import study_tables as grid

ROWS, COLUMNS = grid.Axis("loss.tau1", [0.2, 1]), grid.Axis("loss.tau2", [0, 1, 2])
NAMES = [[[f"{row}{column}{training}" for training in "xy"] for column in range(3)] for row in "ab"]


@pytest.fixture
def found(tmp_path):
    """top1 is row / 2 + column / 10, the first training 0.05 less, the second as much more."""
    for row in range(2):
        for column in range(3):
            for training, off in enumerate((-0.05, 0.05)):
                value = {"top1": row / 2 + column / 10 + off}
                path = tmp_path / f"{NAMES[row][column][training]}.json"
                path.write_text(json.dumps({"other": {"top1": 0.99}, "nq/test": value}), encoding="utf-8")
    return {"top1": grid.shares(grid.read(tmp_path, "nq/test", NAMES), "top1")}


def test_a_cell_is_the_mean_of_its_trainings_on_the_question_set(found):
    np.testing.assert_allclose(found["top1"], [[0.0, 0.1, 0.2], [0.5, 0.6, 0.7]], atol=1e-12)


def test_tables_have_rows_and_columns_of_values(found):
    lines = grid.tables(found, ROWS, COLUMNS).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if ":" not in line] == [
        ["top-1 (%), loss.tau1 ↓ loss.tau2 →", "0", "1", "2"],
        ["0.2", "0.0", "10.0", "20.0"],
        ["1", "50.0", "60.0", "70.0"],
    ]


def test_the_heat_map_is_the_same_twice_and_shows_the_numbers(found):
    picture = grid.drawn(found, ROWS, COLUMNS)
    assert picture == grid.drawn(found, ROWS, COLUMNS)
    assert picture.startswith("<?xml")
    assert picture != grid.drawn({"top1": found["top1"][:, ::-1]}, ROWS, COLUMNS)
