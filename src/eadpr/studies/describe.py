"""Tables of a collection (EADPR, Table 1), its relations (Sciavolino, Table 3.1) and trainings (PiCL, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc
import typer
from safetensors import safe_open

from eadpr.report import markdown as md
from eadpr.runtime import files, runs
from eadpr.settings.resolve import load
from eadpr.storage import tables
from eadpr.storage.records import Passage, Positive, Question, SetMember
from eadpr.studies import provenance
from eadpr.training.config import Loss, Train


def main(
    params: Path = typer.Option(Path("params.yaml"), help="The parameter file."),
    out: Path = typer.Option(None, help="Write <OUT>/<collection>/collection.md in place of printing it."),
) -> str:
    """Show tables of the collection, its relations and the time and memory of the active arms' training."""
    values = load(params)
    name = values["collection"]
    data = Path("data") / name
    parts = [describe_collection(data / "records", data / "positives" / "positives.parquet")]
    if relations := describe_relations(data / "records"):
        parts += ["## Relations", relations]
    parts += ["## Training", describe_training(data, values)]
    if out is None:
        return "\n\n".join([f"# {name}", *parts])
    path = out / name / "collection.md"
    head = [f"# {name}", f"`eadpr describe`, measured at {provenance.commit()} ({date.today().isoformat()})."]
    files.write_text(path, "\n\n".join([*head, *parts]) + "\n")
    return f"describe: {path}"


def describe_collection(records: Path, positives: Path) -> str:
    """Return the number of passages, and where the first positive of each set's questions comes from."""
    passages = records / "passages.parquet"
    count = tables.count(passages, Passage)
    words = 0
    for batch in tables.batches(passages, Passage, columns=["text"]):
        words += pc.sum(pc.count_substring_regex(batch["text"], r"\S+")).as_py() or 0
    first = tables.read(positives, Positive, ["question_id", "source"]).to_pandas().drop_duplicates("question_id")
    members = _read_set_members(records).merge(first, "left", "question_id")
    counts = pd.crosstab(members["name"], members["source"].fillna("none"))
    counts = counts.reindex(index=members["name"].unique(), columns=["given", "bm25", "none"], fill_value=0)
    counts.insert(0, "questions", counts.sum(axis=1))
    header = ["question set", "questions", "positive given", "by BM25", "none, or not used"]
    rows = [[name, *(f"{n:,}" for n in numbers)] for name, *numbers in counts.itertuples()]
    return f"{count:,} passages of {words / count:.0f} words on average.\n\n{md.table(header, rows)}"


def describe_relations(records: Path) -> str | None:
    """Return a table of the questions of each relation and set with an example; None where no question has one."""
    questions = tables.read(records / "questions.parquet", Question, ["id", "question", "relation"]).to_pandas()
    members = _read_set_members(records).merge(questions, left_on="question_id", right_on="id")
    members = members[members["relation"].fillna("") != ""]
    if members.empty:
        return None
    examples = members.groupby("relation")["question"].first()
    counts = pd.crosstab(members["relation"], members["name"])[members["name"].unique()]
    rows = [[relation, *(f"{n:,}" for n in numbers), examples[relation]] for relation, *numbers in counts.itertuples()]
    return md.table(["relation", *counts.columns, "example"], rows)


def _read_set_members(records: Path) -> pd.DataFrame:
    """Return `question_id` and `name` (set/split) of every member of a question set."""
    members = tables.read(records / "question_sets.parquet", SetMember).to_pandas()
    return members.assign(name=members["question_set"] + "/" + members["split"])


def describe_training(data: Path, values: Mapping[str, Any]) -> str:
    """Return a table with a row per active arm; `data` is data/<collection>.

    Seconds and memory are from the last training on this machine with the arm's config; there are none where DVC
    took the encoders from its cache.
    """
    records = _read_training_records()
    rows = []
    for arm, edges in values["active"].items():
        config, model = data / "configs" / arm / "train.json", data / "models" / arm
        if not model.is_dir():
            raise FileNotFoundError(f"{model} does not exist; train the arm first (dvc repro)")
        sections = files.read_json(config, "loss", "train")
        loss, train = Loss(**sections["loss"]), Train(**sections["train"])
        steps = files.read_json(data / "training" / arm / "metrics.json", "steps")["steps"]
        passages = 1 + train.hard_negatives + loss.needs_distractors + loss.needs_placebos
        counts = [train.batch_size * train.accumulation, passages, steps, _count_refreshes(edges["negatives"], values)]
        taken = [md.NONE, md.NONE]
        if record := records.get((str(model), files.sha256(config))):
            memory = record["gpu_memory_gib"] or record["memory_gib"]
            taken = [f"{record['seconds']:,.0f}", f"{memory:.1f}"]
        size = f"{_count_parameters(model / 'passage_encoder') / 1e6:.1f}"
        rows.append([arm, size, *(f"{count:,}" for count in counts), *taken])
    header = ["arm", "M parameters per encoder", "batch", "passages per question", "steps", "refreshes", "s", "GiB"]
    return md.table(header, rows)


def _read_training_records() -> dict[tuple[str, str | None], dict]:
    """Return the record of the last training on this machine by output folder and hash of the config."""
    records = {}
    for record in runs.recorded():
        stage, *options = record["command"]
        if stage == "train" and "--out" in options:
            records[options[options.index("--out") + 1], record.get("config")] = record  # older ones have no config
    return records


def _count_parameters(encoder: Path) -> int:
    with safe_open(encoder / "model.safetensors", "np") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 (not a mapping)
    return sum(math.prod(shape) for shape in shapes)


def _count_refreshes(ranking: str, values: Mapping[str, Any]) -> int:
    """Return the rounds of mining with an earlier arm's model behind the negatives of a ranking, 0 for BM25's."""
    if ranking in values["active"]:
        return 1 + _count_refreshes(values["active"][ranking]["negatives"], values)
    edges = values["fused"].get(ranking, {})
    sources = [edges[edge] for edge in ("first", "second") if edge in edges]
    return max((_count_refreshes(source, values) for source in sources), default=0)
