"""A user's own collection of a million passages goes through prepare, bm25, encode and retrieve in 2 GiB.

Not part of the runs that end within the hour: `python -m benchmarks.faults --only load`.
"""

import json
import os
import sys
import time
from pathlib import Path

from benchmarks import made_up, scale
from benchmarks.faults.counts import Count, Tally
from eadpr.storage import tables
from eadpr.storage.records import Context, Question

PASSAGES, QUESTIONS, MOST = 1_000_000, 1_000, 2 << 30  # the last in bytes
STAGES = {
    "prepare": {"sources": "", "raw": "", "out": "records"},
    "bm25": {"records": "records", "out": "rankings/bm25"},
    "base": {"records": "records", "out": "base"},  # a tiny encoder as it begins
    "encode": {"records": "records", "model": "base", "out": "vectors"},
    "retrieve": {"records": "records", "model": "base", "vectors": "vectors", "out": "rankings/dpr"},
}
TINY = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 32, "vocabulary": 2000}


def run(seed: int, folder: Path, share: float) -> list[Count]:
    os.environ["EADPR_CACHE"] = str(folder / "cache")  # a command that ends leaves a record there
    return [passages(folder / "million", round(PASSAGES * share), seed)]


def passages(folder: Path, number: int, seed: int) -> Count:
    """Of made-up passages as a user's own Parquet file; `right` are stages that took less than MOST bytes."""
    rows = _own_files(folder, number, seed)
    configs = _configs(rows)
    tally = Tally(f"stages of an own collection of {number:,} passages, within {MOST >> 30} GiB")
    for name, options in STAGES.items():
        began = time.monotonic()
        config = f"bases/{name}.json" if name == "base" else f"{name}.json"
        cost = scale.run(scale.Stage(name, config, options), folder, configs)
        said = f"{name}: {cost['resident'] >> 20:,} MiB, {time.monotonic() - began:,.0f} s"
        print(f"load: {said}", file=sys.stderr)
        tally.add("right" if cost["resident"] < MOST else "wrong", said)
    return tally.count()


def _own_files(folder: Path, number: int, seed: int) -> dict[str, int]:
    """p.parquet and q.jsonl; how many rows they have."""
    made = made_up.make(folder / "made", QUESTIONS, number, seed=seed)
    (made.records / "passages.parquet").rename(folder / "p.parquet")
    positives: dict[str, list[str]] = {}
    for context in tables.rows(made.records / "contexts.parquet", Context):
        positives.setdefault(context.question_id, []).append(context.passage_id)
    with (folder / "q.jsonl").open("w") as file:
        for one in tables.rows(made.records / "questions.parquet", Question):
            asked = {"id": one.id, "question": one.question, "answers": one.answers}
            file.write(json.dumps(asked | {"positives": positives.get(one.id, [])}) + "\n")
    return {"p.parquet": number, "q.jsonl": QUESTIONS}


def _configs(rows: dict[str, int]) -> dict[str, dict]:
    """Of params.yaml, for these files and a tiny encoder."""
    from eadpr.settings.resolve import configs, load

    values = load(scale.ROOT / "params.yaml")
    files = [
        {"kind": "passages", "path": "p.parquet", "rows": rows["p.parquet"]},
        {"kind": "questions", "path": "q.jsonl", "rows": rows["q.jsonl"], "test_share": 0.2},
    ]
    sets = {"train": ["own/train"], "evaluate": ["own/test"], "annotator": ["own/train"]}
    values["collections"]["made"] = {"source": {"format": "own", "files": files}, "sets": sets}
    values["collections"]["made"]["settings"] = {"base": TINY}
    return configs(values | {"collection": "made"})
