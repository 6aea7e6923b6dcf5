"""A distractor strategy is added where docs/architecture.md says; nothing else needs to name it."""

from importlib.util import module_from_spec, spec_from_file_location
from typing import Literal, get_args

import pytest

from eadpr.explorer import explore, words
from eadpr.library import texts
from eadpr.settings.resolve import load
from eadpr.supervision import config
from tests import explorer_toy
from tests.evaluated import REPORT, SETS
from tests.repository import ROOT
from tests.test_explorer import unpacked

pytestmark = [pytest.mark.explorer, pytest.mark.library]


def test_rows_of_a_user_allow_answers_where_the_pipeline_does():
    assert load(ROOT / "params.yaml")["distractors"]["may_hold_answer"] == texts.MAY_HOLD_ANSWER


def test_a_new_strategy_needs_no_line_in_the_library(monkeypatch):
    monkeypatch.setattr(config, "Strategy", Literal[(*get_args(config.Strategy), "mine")])
    spec = spec_from_file_location("with_mine", texts.__file__)
    again = module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.MAY_HOLD_ANSWER == texts.MAY_HOLD_ANSWER | {"mine": False}


def test_a_new_strategy_needs_no_words_in_the_explorer(tmp_path, monkeypatch):
    monkeypatch.delitem(words.EVIDENCE, REPORT.strategy)
    explore.run(explorer_toy.write(tmp_path), tmp_path / "page.html", "toy", REPORT, SETS)
    found = unpacked((tmp_path / "page.html").read_bytes(), "columns")
    assert found["evidence"] == f"evidence: what “{REPORT.strategy}” takes for it"
