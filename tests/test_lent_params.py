"""params.yaml is after a study what it was before, also where the study was killed, and no edit is lost."""

import pytest

from eadpr.studies import lent_params
from tests import study_toy
from tests.repository import ROOT

BEFORE = "a: 1   # one\nb: {c: 2}\n"
CHANGES = ["b.c=3"]


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(BEFORE, encoding="utf-8")
    (tmp_path / "kept").mkdir()
    return path


def killed(params):
    """As a study leaves it that set its settings and could not end."""
    kept = params.parent / "kept" / lent_params.KEPT
    with lent_params.lent(params, CHANGES, kept.parent):
        lent_params.apply(CHANGES, params)
        left = {path: path.read_text(encoding="utf-8") for path in (params, kept)}
    for path, text in left.items():
        path.write_text(text, encoding="utf-8")
    return left[params]


def interrupted(params):
    with lent_params.lent(params, CHANGES, params.parent / "kept"):
        lent_params.apply(CHANGES, params)
        assert params.read_text(encoding="utf-8") != BEFORE
        raise KeyboardInterrupt


def test_it_is_put_back_whether_or_not_it_was_changed_or_the_study_failed(params, capsys):
    with lent_params.lent(params, CHANGES, params.parent / "kept"):
        pass
    with pytest.raises(KeyboardInterrupt):
        interrupted(params)
    with lent_params.lent(params, CHANGES, params.parent / "kept"):
        params.unlink()
    assert params.read_text(encoding="utf-8") == BEFORE
    assert list((params.parent / "kept").iterdir()) == []
    assert sorted(path.name for path in params.parent.iterdir()) == ["kept", "params.yaml"]
    assert capsys.readouterr().err == ""


def test_an_edit_meanwhile_is_kept_beside_it(params, capsys):
    with lent_params.lent(params, CHANGES, params.parent / "kept"):
        params.write_text(f"{BEFORE}mine: 4\n", encoding="utf-8")
    assert params.read_text(encoding="utf-8") == BEFORE
    assert (params.parent / "params.yaml.edited").read_text(encoding="utf-8") == f"{BEFORE}mine: 4\n"
    assert f"{params} was edited while the study ran: that text is {params}.edited now" in capsys.readouterr().err


def test_what_a_killed_study_left_is_taken_back_or_said_where_it_was_edited_since(params, capsys):
    killed(params)
    lent_params.take_back(params, params.parent / "kept")
    assert params.read_text(encoding="utf-8") == BEFORE
    assert "had the settings of a study that was killed" in capsys.readouterr().err
    edited = killed(params) + "mine: 4\n"
    params.write_text(edited, encoding="utf-8")
    lent_params.take_back(params, params.parent / "kept")
    assert params.read_text(encoding="utf-8") == edited
    assert (params.parent / "params.yaml.before").read_text(encoding="utf-8") == BEFORE
    assert "was edited since" in capsys.readouterr().err
    params.write_text(BEFORE, encoding="utf-8")
    killed(params)
    params.write_text(BEFORE, encoding="utf-8")  # checked out
    for _ in range(2):
        lent_params.take_back(params, params.parent / "kept")
    assert (params.read_text(encoding="utf-8"), capsys.readouterr().err) == (BEFORE, "")


def test_an_edit_while_dvc_runs_is_not_what_the_table_says(tmp_path):
    folder = study_toy.create(tmp_path / "project")
    dvc = folder / "bin" / "dvc"
    edits = "\nsed -i 's/learning_rate: 2.0e-3/learning_rate: 7.0e-1/' params.yaml\n"
    dvc.write_text(dvc.read_text(encoding="utf-8") + edits, encoding="utf-8")
    done = study_toy.study(folder, "plain")
    assert (done.returncode, "params.yaml.edited now" in done.stderr) == (0, True), done.stderr
    assert "7.0e-1" in (folder / "params.yaml.edited").read_text(encoding="utf-8")
    table = (folder / "docs/studies/atlas/plain.md").read_text(encoding="utf-8")
    assert ("0.002" in table, "0.7" in table) == (True, False)


def test_a_study_begins_with_the_settings_from_before_one_that_was_killed(tmp_path):
    folder = study_toy.create(tmp_path / "project", dvc_ends_with=1)
    params, before = folder / "params.yaml", (ROOT / "params.yaml").read_bytes()
    dvc = folder / "bin" / "dvc"
    whole = dvc.read_text(encoding="utf-8")
    dvc.write_text(f"{whole}\nkill -9 $PPID\n", encoding="utf-8")
    assert study_toy.study(folder, "plain", "-S", "train.learning_rate=0.5").returncode not in (0, 1)
    assert b"learning_rate: 0.5" in params.read_bytes()
    dvc.write_text(whole.replace("if 1:", "if 0:"), encoding="utf-8")
    done = study_toy.study(folder, "plain")
    assert "params.yaml had the settings of a study that was killed" in done.stderr
    assert "learning_rate=0.5" not in done.stdout
    assert (done.returncode, params.read_bytes()) == (0, before), done.stderr
