"""Runs a stage of each kind that keeps work in progress: killed, then run again after an edit of its code.

`python -m tests.killed_and_edited FOLDER` works on a copy of `src/eadpr` for each case, in the folder of its number:
`before` and `whole` are what undisturbed runs make before and after the edit, `again` is what the killed one ends with.
Every run is a fork, so that libraries are imported once and our code anew."""

import importlib
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Case(NamedTuple):
    """An edit that changes what the stage makes: what is appended to a file of eadpr."""

    stage: str
    edited: str
    code: str


NO_DROPOUT = """
_prepare = prepare_encoders
prepare_encoders = lambda encoders, train: _prepare(encoders, train.model_copy(update={"dropout": 0.0}))
"""
CASES = (
    Case("evidence", "text/answers.py", "answer_spans = lambda *of: []"),
    Case("train", "training/config.py", "Loss.masks_false_negatives = property(lambda loss: False)"),
    Case("train", "training/arm.py", NO_DROPOUT),
)


def evidence(given: Path, out: Path, *, killed: bool) -> None:
    from eadpr.storage import tables
    from eadpr.supervision import evidence
    from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE

    evidence.SHARD = 2

    def dying(path, record, rows, write=tables.write):
        if path.name == "000001.parquet":
            os.kill(os.getpid(), signal.SIGKILL)
        return write(path, record, rows)

    if killed:
        tables.write = dying
    settings = EVIDENCE.model_copy(update={"strategies": ["sentence", "window", "answer"]})
    given = {name: given / name for name in ("records", "positives")} | {"annotator_folder": given / "annotator"}
    evidence.find_evidence(settings, SEPARATE, HARDWARE, **given, out=out / "evidence.parquet")


def train(given: Path, out: Path, *, killed: bool) -> None:
    from eadpr.training import loop
    from eadpr.training.arm import ArmInputs, ArmSettings, train_arm
    from tests.training_toy import EADPR, MACHINE, SETTINGS, TRAIN

    def dying(values, step, **_):
        if step == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    if killed:
        loop.check_finite = dying
    inputs = ArmInputs(given / "records", given / "examples", given / "base")
    train_arm(inputs, out / "model", out / "log", ArmSettings(EADPR, TRAIN, SETTINGS, MACHINE))


def prepare(given: Path) -> None:
    from eadpr.supervision.annotator_manifest import Manifest, Prompt, write_manifest
    from tests import supervision_toy, training_toy

    supervision_toy.write_collection(given / "evidence")
    (given / "evidence" / "annotator").mkdir()
    write_manifest(given / "evidence" / "annotator", Manifest("none", Prompt("{question} {context}", True), [], {}))
    training_toy.write_all(given / "train")


def forked(tree: Path, cache: Path, work, *args, **options) -> int:
    """The exit code of `work`, done by the code in `tree`."""
    child = os.fork()
    if not child:
        try:
            sys.path.insert(0, str(tree))
            os.environ["EADPR_CACHE"] = str(cache)
            from eadpr.runtime.machine import Machine, settle

            settle(Machine(threads=1, deterministic=True, precision="float32"))
            work(*args, **options)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def import_libraries() -> None:
    """With all that the stages import, which is then forgotten but for the libraries."""
    for module in ("eadpr.supervision.evidence", "eadpr.training.arm", "transformers.models.bert.modeling_bert"):
        importlib.import_module(module)
    for module in [name for name in sys.modules if name.startswith("eadpr")]:
        del sys.modules[module]


def kill_and_edit(case: Case, folder: Path) -> None:
    stage, given = {"evidence": evidence, "train": train}[case.stage], folder.parent / "given" / case.stage
    tree, cache = folder / "tree", folder / "cache"
    shutil.copytree(ROOT / "src" / "eadpr", tree / "eadpr", ignore=shutil.ignore_patterns("__pycache__"))
    assert forked(tree, folder / "cache of before", stage, given, folder / "before", killed=False) == 0
    assert forked(tree, cache, stage, given, folder / "again", killed=True) == -signal.SIGKILL
    with (tree / "eadpr" / case.edited).open("a") as code:
        code.write(f"\n{case.code}\n")
    assert forked(tree, cache, stage, given, folder / "again", killed=False) == 0
    assert forked(tree, folder / "cache of whole", stage, given, folder / "whole", killed=False) == 0


def main(folder: Path) -> None:
    os.environ["EADPR_CHECKPOINT_SECONDS"] = "0"
    import_libraries()
    assert forked(ROOT / "src", folder, prepare, folder / "given") == 0
    for number, case in enumerate(CASES):
        kill_and_edit(case, folder / str(number))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
