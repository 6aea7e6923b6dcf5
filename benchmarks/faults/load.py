"""Many questions and many passages: `ask` answers 10,000 questions, 8 at once, and its memory stays; an own collection
of a million passages goes through prepare, bm25, encode and retrieve in 2 GiB.

Not part of the runs that end within the hour: `python -m benchmarks.faults --only load`. $FAULTS_ASK is the folder of a
built collection, by default data/atlas.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks import made_up, scale
from benchmarks.faults.counts import Count, Tally
from eadpr.storage import tables
from eadpr.storage.records import Context, Question

QUESTIONS, AT_ONCE, SETTLED = 10_000, 8, 1_000  # after SETTLED of them memory is to stay
GROWTH = 1.1  # times
PASSAGES, ASKED, MOST = 1_000_000, 1_000, 2 << 30  # the last in bytes
STAGES = {
    "prepare": {"sources": "", "raw": "", "out": "records"},
    "bm25": {"records": "records", "out": "rankings/bm25"},
    "base": {"records": "records", "out": "base"},  # a tiny encoder as it begins
    "encode": {"records": "records", "model": "base", "out": "vectors"},
    "retrieve": {"records": "records", "model": "base", "vectors": "vectors", "out": "rankings/dpr"},
}
TINY = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 32, "vocabulary": 2000}


class Server(NamedTuple):
    port: int
    process: int

    def reply(self, question: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        body = json.dumps({"question": question}).encode()
        connection.request("POST", "/ask", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        found = response.status, response.read().decode()
        connection.close()
        return found

    def resident(self) -> int:
        """Bytes."""
        said = Path(f"/proc/{self.process}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", said)[1]) * 1024


def run(seed: int, folder: Path, share: float) -> list[Count]:
    made = Path(os.environ.get("FAULTS_ASK", scale.ROOT / "data/atlas")).absolute()
    os.environ["EADPR_CACHE"] = str(folder / "cache")  # a command that ends leaves a record there
    return [*asked(made, round(QUESTIONS * share)), passages(folder / "million", round(PASSAGES * share), seed)]


def asked(made: Path, number: int) -> list[Count]:
    """Questions of the collection in turns, AT_ONCE at once: each gets the reply that it got first, alone."""
    found = islice(tables.rows(made / "records" / "questions.parquet", Question), min(200, number // 20 + 2))
    questions = [one.question for one in found]
    replies = Tally(f"questions to `ask --serve`, {AT_ONCE} at once")
    with serving(made) as server, ThreadPoolExecutor(AT_ONCE) as pool:
        alone = {question: server.reply(question) for question in questions}
        settled = 0
        turns = (questions[i % len(questions)] for i in range(number))
        for i, (question, reply) in enumerate(pool.map(lambda one: (one, server.reply(one)), turns), start=1):
            right = reply == alone[question] and reply[0] == 200
            replies.add("right" if right else "wrong", f"{question}: {reply[0]} {reply[1][:100]}")
            if i == min(SETTLED, number // 2):
                settled = server.resident()
        last = server.resident()
    mebi = f"{settled >> 20:,} MiB after {min(SETTLED, number // 2):,} questions, {last >> 20:,} MiB after {number:,}"
    memory = Tally(f"memory of `ask --serve`: {mebi}")
    memory.add("right" if last <= GROWTH * settled else "wrong", mebi)
    return [replies.count(), memory.count()]


@contextmanager
def serving(made: Path) -> Iterator[Server]:
    arm = sorted(path.name for path in (made / "vectors").glob("[!.]*"))[0]
    words = ("--serve", "--port", "0", "--arm", arm, "--collection", made.name)
    command = [sys.executable, "-m", "stages.ask", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(scale.ROOT / "src"), str(scale.ROOT)])}
    process = subprocess.Popen(command, cwd=made.parents[1], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        yield Server(int(re.search(r"http://[^/]*:(\d+)/", line)[1]), process.pid)
    finally:
        process.terminate()
        process.wait()


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
    made = made_up.make(folder / "made", ASKED, number, seed=seed)
    (made.records / "passages.parquet").rename(folder / "p.parquet")
    positives: dict[str, list[str]] = {}
    for context in tables.rows(made.records / "contexts.parquet", Context):
        positives.setdefault(context.question_id, []).append(context.passage_id)
    with (folder / "q.jsonl").open("w") as file:
        for one in tables.rows(made.records / "questions.parquet", Question):
            asked = {"id": one.id, "question": one.question, "answers": one.answers}
            file.write(json.dumps(asked | {"positives": positives.get(one.id, [])}) + "\n")
    return {"p.parquet": number, "q.jsonl": ASKED}


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
