"""What another precision gains and costs: an arm and the annotator of a built collection, as they are but for the
section `machine`.

    python -m benchmarks.precision data/atlas eadpr --evidence

The arm encodes all passages and questions in each precision and is measured as the pipeline measures it. Speeds are
those that the stages say, without starting up; the precisions take turns. With `--evidence` evidence is found again in
each, and compared with that in float32.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import typer

from benchmarks.runner import ROOT
from eadpr.runtime import files

PRECISIONS = {
    "float32, AVX2": {"deterministic": True, "precision": "float32"},
    "float32": {"deterministic": False, "precision": "float32"},
    "bfloat16": {"deterministic": False, "precision": "bfloat16"},
}
METRICS = ("top1", "top5", "controlled_aa", "controlled_aa_evidence")
SPEED = re.compile(r"(?m)^(?:encode|evidence): [\d,]+ .*?, ([\d,.]+) \w+/s$")


def main(
    collection: Path = typer.Argument(..., help="Its folder, such as data/atlas."),
    arm: str = typer.Argument(...),
    evidence: bool = typer.Option(False, help="Find evidence too."),
    turns: int = typer.Option(3, min=1, help="How often each precision encodes."),
) -> None:
    """Print a row per precision: how many times as fast as the first, and the metrics in percent."""
    with tempfile.TemporaryDirectory() as temporary:
        runs = {
            name: Run(collection, arm, Path(temporary) / str(n), PRECISIONS[name]) for n, name in enumerate(PRECISIONS)
        }
        speeds = [{name: run.encoded(turn) for name, run in runs.items()} for turn in range(turns)]
        found = {name: {"encoding": against_first(speeds, name), **run.measured()} for name, run in runs.items()}
        if evidence:
            speeds = [{name: run.found_evidence() for name, run in runs.items()}]
            exact = next(iter(runs.values())).evidence
            for name, run in runs.items():
                found[name] |= {"evidence": against_first(speeds, name), "same spans": same(exact, run.evidence)}
    typer.echo(pd.DataFrame(found).T.to_markdown(floatfmt=".2f"))


def against_first(speeds: list[dict[str, float]], name: str) -> str:
    ratios = [turn[name] / next(iter(turn.values())) for turn in speeds]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})"


def same(exact: Path, other: Path) -> float:
    """Percent of the pairs for which a model chose the same spans."""
    tables = [pd.read_parquet(path) for path in (exact, other)]
    first, second = (table[table["strategy"] == "pseudo"]["chosen"].map(str).to_numpy() for table in tables)
    return 100 * float((first == second).mean())


class Run:
    """Stages of one precision; what they write goes into `folder`."""

    def __init__(self, collection: Path, arm: str, folder: Path, machine: dict[str, object]) -> None:
        self._collection, self._arm, self._folder, self._machine = collection.resolve(), arm, folder, machine
        self._records, self._model = self._collection / "records", self._collection / "models" / arm
        self.evidence = folder / "evidence.parquet"
        (folder / "configs").mkdir(parents=True)

    def encoded(self, turn: int) -> float:
        """Passages per second."""
        self._vectors = self._folder / f"vectors{turn}"
        return self._stage("encode", records=self._records, model=self._model, out=self._vectors)

    def found_evidence(self) -> float:
        """Pairs per second."""
        given = {"positives": self._collection / "positives", "annotator": self._collection / "annotator"}
        return self._stage("evidence", records=self._records, **given, out=self.evidence)

    def measured(self) -> dict[str, float]:
        """`METRICS` in percent, of the first question set."""
        given, positives = {"records": self._records, "model": self._model}, self._collection / "positives"
        ranking, pairs, out = (self._folder / name for name in ("ranking", "pairs.parquet", "outcomes.parquet"))
        self._stage("retrieve", **given, vectors=self._vectors, out=ranking)
        self._stage("probe", **given, positives=positives, distractors=self._collection / "distractors", out=pairs)
        self._stage("evaluate", records=self._records, positives=positives, ranking=ranking, pairs=pairs, out=out)
        values = pd.read_parquet(out)
        values = values[values["question_set"] == values["question_set"].iloc[0]]
        means = values.groupby("metric")["value"].mean()
        return {metric: 100 * float(means[metric]) for metric in METRICS if metric in means}

    def _stage(self, name: str, **options: Path) -> float | None:
        """What it says of its speed."""
        config = files.read_json(self._collection / "configs" / f"{name}.json")
        if "machine" in config:
            config["machine"] |= self._machine
        files.write_json(self._folder / "configs" / f"{name}.json", config)
        words = [word for option, path in options.items() for word in (f"--{option}", str(path))]
        command = [sys.executable, "-m", f"stages.{name}", "--config", str(self._folder / "configs" / f"{name}.json")]
        with tempfile.TemporaryDirectory() as cache:  # else the second turn would find what the first has kept
            given = os.environ | {"EADPR_CACHE": cache, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
            done = subprocess.run(
                [*command, *words], cwd=ROOT, env=given, stderr=subprocess.PIPE, text=True, check=False
            )
        if done.returncode:
            raise SystemExit(done.stderr)
        said = SPEED.findall(done.stderr)
        return float(said[-1].replace(",", "")) if said else None


if __name__ == "__main__":
    typer.run(main)
