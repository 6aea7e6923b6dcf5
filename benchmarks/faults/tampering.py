"""What stages made, changed behind their back: by a byte, by a row, by another run's file.

A stage that is run by hand reads an intermediate as it finds it: what fits its schema it has to take. `dvc repro`
compares hashes with dvc.lock and makes again what differs, which is DVC's work."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

from benchmarks.faults import toy
from benchmarks.faults.counts import Count, Outcome, Tally, refused
from benchmarks.faults.toy import Bench, Stage

Change = Callable[[Path, Random], bool]


def run(seed: int, folder: Path, share: float) -> list[Count]:
    project, other = toy.built(folder), toy.built(folder, seed=2)
    bench = Bench(project, folder / "bench-tampering")

    def of_another_run(path: Path, _: Random) -> bool:
        theirs = other.folder / path.relative_to(bench.folder)
        if not theirs.exists():
            return False
        shutil.copyfile(theirs, path)
        return True

    changes = {"a byte": flip, "cut in half": cut, "a row less": less, "another run's file": of_another_run}
    readers = [stage for stage in toy.stages(project) if not stage.name.endswith("@dpr") and stage.name != "configs"]
    made = []
    for kind, change in changes.items():
        tally, random = Tally(f"{kind}, then its stage by hand"), Random(f"{seed} {kind}")
        pairs = [(stage, path) for stage in readers for path in intermediates(bench, stage)]
        for stage, path in random.sample(pairs, len(pairs)):
            if tally.count().tried == (round(share * 75) or 1):
                break
            name = str(path.relative_to(bench.folder))
            if changed(path, change, random):
                outcome, said = by_hand(bench, stage, name)
                tally.add(outcome, f"seed {seed}: {name}, read by {stage.name}: {said}")
            bench.take(project, [name, *stage.outs])
        made.append(tally.count())
    return made


def intermediates(bench: Bench, stage: Stage) -> list[Path]:
    found = [part for read in stage.reads if read.startswith("data/atlas") for part in toy.parts(bench.folder / read)]
    return [part for part in found if part.suffix != ".txt" or "code" not in part.parts]  # no stage reads its own code


def changed(path: Path, change: Change, random: Random) -> bool:
    """By an editor that writes a new file; whether it has other bytes."""
    before, content = toy.hashed(path), path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    return change(path, random) and toy.hashed(path) != before


def flip(path: Path, random: Random) -> bool:
    content = bytearray(path.read_bytes())
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    return True


def cut(path: Path, _: Random) -> bool:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return True


def less(path: Path, random: Random) -> bool:
    """Without a row of a table, an array or a text, a value of JSON, a tensor of a model."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        if not len(table):
            return False
        gone = random.randrange(len(table))
        pq.write_table(table.take([row for row in range(len(table)) if row != gone]), path)
    elif path.suffix == ".npy":
        np.save(path, np.load(path)[:-1])
    elif path.suffix == ".safetensors":
        tensors = load_file(path)
        tensors.pop(random.choice(sorted(tensors)))
        save_file(tensors, path, {"format": "pt"})
    elif path.suffix == ".json":
        value = json.loads(path.read_text(encoding="utf-8"))
        holders = [each for each in nested(value) if each]
        if not holders:
            return False
        holder = random.choice(holders)
        holder.pop(random.choice(sorted(holder)) if isinstance(holder, dict) else random.randrange(len(holder)))
        path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    else:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if not lines:
            return False
        lines.pop(random.randrange(len(lines)))
        path.write_text("".join(lines), encoding="utf-8")
    return True


def nested(value: object) -> list:
    """It and all objects and lists within."""
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(part for each in inner for part in nested(each))]


def by_hand(bench: Bench, stage: Stage, name: str) -> tuple[Outcome, str]:
    bench.clear(stage)
    ended = bench.run(stage)
    if ended.code:
        folders = [str(parent) for parent in Path(name).parents[:-2]]
        return refused(ended.said, [name, *folders, "run `dvc repro`"]), ended.said[-600:]
    same = bench.outs(stage.outs) == {out: toy.hashed(bench.built / out) for out in stage.outs}
    return ("right", "") if same else ("wrong", "taken, with another result")
