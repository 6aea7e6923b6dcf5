"""params.yaml and the files of collections: what is read of them, and what `dvc exp run -S` makes of them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides

from eadpr.settings import resolve as params
from eadpr.settings.yaml import COLLECTIONS, SettingError, flatten, load, merged
from tests import forked_python
from tests.repository import ROOT

FILES = [Path("params.yaml"), *sorted(path.relative_to(ROOT) for path in (ROOT / COLLECTIONS).glob("*.yaml"))]
PARAMS, SQUAD = Path("params.yaml"), COLLECTIONS / "squad-open.yaml"
STEPS = "collections.squad-open.settings.train.steps"
KEYS = {"params": "loss.tau1", "hotpot-sample": "settings.two_hop.query_tokens"}
KEYS |= dict.fromkeys(("squad-open", "squad-nq-ramdocs"), "settings.train.steps")
KEYS |= dict.fromkeys(("timeqa", "covid-qa"), "settings.positives.validation")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folder of a copy of the files."""
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


@pytest.mark.parametrize("file", [file for file in FILES if file.stem != "atlas"], ids=str)  # which sets nothing
def test_setting_one_key_changes_one_line(copied, file):
    key = KEYS.get(file.stem, "settings.train.learning_rate")
    apply_overrides(copied / file, [f"{key}=7"])
    old_lines, new_lines = ((folder / file).read_text(encoding="utf-8").splitlines() for folder in (ROOT, copied))
    assert len(new_lines) == len(old_lines)
    ((old, new),) = [(old, new) for old, new in zip(old_lines, new_lines, strict=True) if old != new]
    assert (old.partition(":")[0], new.partition(":")[2].split()[0]) == (new.partition(":")[0], "7")


def test_params_are_read_over_the_defaults(copied):
    """And over the files of collections: a mapping merges, and a key that nothing knows is refused by name."""
    defaults = load(copied / "params.yaml")
    apply_overrides(copied / "params.yaml", ["++train.adam_eps=1e-6", f"++{STEPS}=100"])
    steps = {"collections": {"squad-open": {"settings": {"train": {"steps": 100}}}}}
    assert [flatten(defaults)[key] for key in ("train.adam_eps", STEPS)] == [1e-8, 800]
    assert load(copied / "params.yaml") == merged(defaults, {"train": {"adam_eps": 1e-6}} | steps)
    apply_overrides(copied / "params.yaml", ["++train.adam=1e-6"])
    with pytest.raises(SettingError, match=r"^params.yaml: train\.adam: unknown key; did you mean adam_"):
        params.configs(load(copied / "params.yaml"))


@pytest.mark.parametrize(("file", "change", "key"), [
    (SQUAD, "settings.train.steps=-7", "settings.train.steps"),
    (SQUAD, "+settings.path_reader={token: 9}", "settings.path_reader.token"),
    (SQUAD, "+settings.path_reader={kind: fid}", "settings.path_reader.kind"),
    (SQUAD, "+settings.path_reader={tokens: 39}", "settings.path_reader"),
    (SQUAD, "+settings.collection=x", "settings.collection"),
    (SQUAD, "~source.format", "source.format"),
    (SQUAD, "source.files.0.sha256=x", "source.files.0.sha256"),
    (PARAMS, f"++{STEPS}=-7", "settings.train.steps"),
])  # fmt: skip
def test_a_message_begins_with_the_file_of_the_setting(copied, monkeypatch, file, change, key):
    monkeypatch.chdir(copied)
    apply_overrides(file, [change])
    place = f"{SQUAD}: {key}: " if file == SQUAD else f"{PARAMS}: collections.squad-open.{key}: "
    with pytest.raises(SettingError, match=f"^{place}") as error:
        params.configs(load(PARAMS))
    assert error.value.key == f"collections.squad-open.{key}"


def test_the_stage_says_what_the_collection_sets_and_how_to_have_the_one_before_back(copied):
    for part in ("src", "stages"):
        (copied / part).symlink_to(ROOT / part)
    shutil.copy(ROOT / "dvc.lock", copied)
    for words in ("init -q", "add params.yaml", "-c user.name=a -c user.email=a@b.c commit -qm all"):
        subprocess.run(["git", *words.split()], cwd=copied, check=True)
    apply_overrides(copied / "params.yaml", ["collection=squad-open"])
    environment = os.environ | {"PYTHONPATH": f"src{os.pathsep}."}
    command = [forked_python.folder() / "python", "-m", "stages.configs"]
    done = subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True, check=True)
    first, edit, notice, second = done.stdout.splitlines()
    assert first.endswith("for squad-open (untrained, dpr, eadpr-paper, eadpr)")
    assert edit == "configs: differs from the commit: collection=squad-open"
    assert notice.startswith("configs: squad-open has its own encoder.passage_tokens, train.steps, reader.tokens, anno")
    assert notice.endswith("; to change them: -S ++collections.squad-open.settings.NAME=VALUE")
    assert "for atlas may leave data/" in second
    assert "`dvc exp apply NAME`" in second
    shutil.copy(ROOT / "params.yaml", copied)
    done = subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 1
