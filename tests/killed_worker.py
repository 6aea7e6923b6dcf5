"""Workers of which one dies in the middle of a shard, and a script that runs both stages with them on a Ray cluster.

What was made by which process stands in a folder of marks."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

from eadpr.search.encode import ShardEncoder
from eadpr.supervision.evidence import ShardAnnotator
from tests import small_collection as small
from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE

DEADLY = 1  # the number of the shard


class Mortal:
    """Dies when it first comes to the shard DEADLY, with half of its file written."""

    def __init__(self, marks: Path, *given: object) -> None:
        super().__init__(*given)
        self._marks = marks / type(self).__name__
        self._marks.mkdir(parents=True, exist_ok=True)

    def __call__(self, number: int):
        if number == DEADLY and not (self._marks / "died").exists():
            (self._marks / "died").write_text(str(os.getpid()))
            path = self.path(number)
            path.with_name(f".{path.name}.{os.getpid()}.tmp").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().__call__(number)
        with (self._marks / "made").open("a") as file:
            file.write(f"{number} {os.getpid()}\n")


class Encoder(Mortal, ShardEncoder):
    def path(self, number: int) -> Path:
        return self._shards / f"vectors-{number:05d}.npy"


class Annotator(Mortal, ShardAnnotator):
    def path(self, number: int) -> Path:
        return self.shards[number]


def main(folder: Path, out: Path) -> None:
    """Both stages on the cluster, then in this process."""
    from eadpr.runtime import cluster, machine
    from eadpr.search import encode
    from eadpr.supervision import evidence
    from tests import killed_worker  # not __main__, so that actors find the classes

    machine.settle(HARDWARE)
    evidence.SHARD = 2
    encode.ShardEncoder = partial(killed_worker.Encoder, out)
    evidence.ShardAnnotator = partial(killed_worker.Annotator, out)
    run(folder, out / "ray")
    del os.environ[cluster.ADDRESS]
    os.environ["EADPR_CACHE"] = str(out / "cache")
    encode.ShardEncoder, evidence.ShardAnnotator = ShardEncoder, ShardAnnotator
    run(folder, out / "local")
    print(os.getpid())


def run(folder: Path, out: Path) -> None:
    from eadpr.runtime.machine import Machine
    from eadpr.search.config import Encode
    from eadpr.search.encode import encode
    from eadpr.supervision.evidence import find_evidence

    settings, hardware = Encode(**small.ENCODE), Machine(**small.MACHINE)
    encode(folder / "passages.parquet", folder / "arm", out / "vectors", settings=settings, hardware=hardware)
    given = {"records": folder / "records", "positives": folder / "positives", "annotator_folder": folder / "annotator"}
    find_evidence(EVIDENCE, SEPARATE, HARDWARE, out=out / "evidence.parquet", **given)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
