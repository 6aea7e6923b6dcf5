"""Grids of a study: means over trainings, tables, the picture."""

import json

import numpy as np
import pytest

from eadpr.studies import trainings as describe
from eadpr.studies.run import Grid

VALUES = {"row_values": [0.2, 1], "column_values": [0, 1, 2]}
SETTINGS = Grid(arm="e", rows="loss.tau1", columns="loss.tau2", metrics=["top1"], **VALUES)
ACTIVE = {name: {} for of_row in SETTINGS.names() for name in of_row}
ACTIVE |= {f"{name}-2": {"repeats": name} for name in ACTIVE}


@pytest.fixture
def found(tmp_path):
    """top1 is row / 2 + column / 10, the first training 0.05 less, the second as much more."""
    for row, of_row in enumerate(SETTINGS.names()):
        for column, name in enumerate(of_row):
            for suffix, off in (("", -0.05), ("-2", 0.05)):
                value = {"top1": row / 2 + column / 10 + off}
                path = tmp_path / f"{name}{suffix}.json"
                path.write_text(json.dumps({"other": {"top1": 0.99}, "nq/test": value}), encoding="utf-8")
    return describe.grid(tmp_path, "nq/test", SETTINGS.cells(ACTIVE), ["top1"])


def test_a_cell_is_the_mean_of_its_trainings_on_the_question_set(found):
    np.testing.assert_allclose(found["top1"], [[0.0, 0.1, 0.2], [0.5, 0.6, 0.7]], atol=1e-12)


def test_tables_have_rows_and_columns_of_values(found):
    lines = describe.grid_tables(found).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if ":" not in line] == [
        ["top-1 (%), loss.tau1 ↓ loss.tau2 →", "0", "1", "2"],
        ["0.2", "0.0", "10.0", "20.0"],
        ["1", "50.0", "60.0", "70.0"],
    ]


def test_the_heat_map_is_the_same_twice_and_shows_the_numbers(found):
    picture = describe.heat_maps(found)
    assert picture == describe.heat_maps(found)
    assert picture.startswith("<?xml")
    assert picture != describe.heat_maps({"top1": found["top1"].iloc[:, ::-1]})
