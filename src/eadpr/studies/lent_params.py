"""params.yaml while a study runs: DVC leaves the study's settings there, where the next one would start from them."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from eadpr.runtime import files
from eadpr.studies.run import apply

KEPT = "params.json"  # the texts before and with the study's settings, for as long as they stand in params.yaml


@contextmanager
def lent(params: Path, changes: Sequence[str], folder: Path) -> Iterator[None]:
    """Put back after the block what stands in `params` now. Where another than the study edited it meanwhile, that is
    kept beside it, and said."""
    before = params.read_text(encoding="utf-8")
    with TemporaryDirectory() as temporary:
        copy = Path(shutil.copy(params, temporary))
        apply(changes, copy)
        texts = {"before": before, "during": copy.read_text(encoding="utf-8")}
    files.write_json(folder / KEPT, texts)
    try:
        yield
    finally:
        found = params.read_text(encoding="utf-8") if params.exists() else before  # dvc may be stopped between two
        if found not in texts.values():
            edited = params.with_name(f"{params.name}.edited")
            files.write_text(edited, found)
            said = (
                f"{params} was edited while the study ran: that text is {edited} now, with the study's settings in it"
            )
            print(said, file=sys.stderr, flush=True)
        files.write_text(params, before)
        (folder / KEPT).unlink()


def take_back(params: Path, folder: Path) -> None:
    """What a killed study left in `params`. One that was edited since stays; what it was before is put beside it."""
    kept = folder / KEPT
    if not kept.exists():
        return
    texts = json.loads(kept.read_text(encoding="utf-8"))
    found, said = params.read_text(encoding="utf-8"), ""
    if found == texts["during"]:
        files.write_text(params, texts["before"])
        said = f"{params} had the settings of a study that was killed; it is as before now"
    elif found != texts["before"]:
        before = params.with_name(f"{params.name}.before")
        files.write_text(before, texts["before"])
        said = (
            f"{params} may have settings of a study that was killed, and was edited since; {before} is from before it"
        )
    if said:
        print(said, file=sys.stderr, flush=True)
    kept.unlink()
