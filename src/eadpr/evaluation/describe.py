"""What a collection holds (EADPR, Table 1), its relations (Sciavolino et al., Table 3.1), and what arms take to train
(PiCL, Table 1), as Markdown."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from safetensors import safe_open

from eadpr import runs, tables
from eadpr.evaluation import tabulate as md
from eadpr.records import Passage, Positive, Question, SetMember
from eadpr.training.config import Loss, Train


def collection(records: Path, positives: Path) -> str:
    """Questions of every set, with the passages; `given` and `bm25` say where the first positive comes from."""
    passages = records / "passages.parquet"
    count = tables.count(passages, Passage)
    words = 0
    for batch in tables.batches(passages, Passage, columns=["text"]):
        words += pc.sum(pc.count_substring_regex(batch["text"], r"\S+")).as_py() or 0
    sources: dict[str, str] = {}
    for row in tables.rows(positives, Positive):
        sources.setdefault(row.question_id, row.source)
    rows = []
    for name, members in _members(records).items():
        found = Counter(sources.get(question_id, "none") for question_id in members)
        rows.append([name, *(f"{n:,}" for n in (len(members), found["given"], found["bm25"], found["none"]))])
    header = ["question set", "questions", "positive given", "by BM25", "none, or not used"]
    return f"{count:,} passages of {words / count:.0f} words on average.\n\n{md.table(header, rows)}"


def relations(records: Path) -> str | None:
    """Questions per relation and set, and an example; None where no question has a relation."""
    questions = {row.id: row for row in tables.rows(records / "questions.parquet", Question) if row.relation}
    members = _members(records)
    counts = {name: Counter(questions[q].relation for q in found if q in questions) for name, found in members.items()}
    names = [name for name, found in counts.items() if found]
    if not names:
        return None
    examples: dict[str, str] = {}
    for question in questions.values():
        examples.setdefault(question.relation, question.question)
    rows = [
        [relation, *(f"{counts[name][relation]:,}" for name in names), examples[relation]]
        for relation in sorted(examples)
    ]
    return md.table(["relation", *names, "example"], rows)


def resources(made: Path, active: Mapping[str, Mapping[str, Any]]) -> str:
    """A row per active arm; `made` is data/<collection>. Seconds and memory are those of the last training on this
    machine, if any: DVC may have taken the encoders from its cache."""
    took = {}
    for found in runs.recorded():
        stage, *options = found["command"]
        if stage == "train" and "--out" in options:
            took[options[options.index("--out") + 1]] = found
    rows = []
    for arm in active:
        sections = json.loads((made / "configs" / arm / "train.json").read_text(encoding="utf-8"))
        loss, train = Loss(**sections["loss"]), Train(**sections["train"])
        steps = json.loads((made / "training" / arm / "metrics.json").read_text(encoding="utf-8"))["steps"]
        model = made / "models" / arm
        each = 1 + train.hard_negatives + loss.needs_distractors * _levels(made / "examples" / arm)
        found = took.get(str(model))
        rows.append(
            [
                arm,
                f"{_parameters(model / 'passage_encoder') / 1e6:.1f}",
                f"{train.batch_size * train.accumulation:,}",
                f"{each}",
                f"{steps:,}",
                f"{_refreshes(arm, active)}",
                f"{found['seconds']:,.0f}" if found else md.NONE,
                f"{found['gpu_memory_gib'] or found['memory_gib']:.1f}" if found else md.NONE,
            ]
        )
    header = ["arm", "M parameters per encoder", "batch", "passages per question", "steps", "refreshes", "s", "GiB"]
    return md.table(header, rows)


def _members(records: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in tables.rows(records / "question_sets.parquet", SetMember):
        found.setdefault(f"{row.question_set}/{row.split}", []).append(row.question_id)
    return found


def _levels(examples: Path) -> int:
    """Distractors that a question has at most."""
    column = pq.read_table(examples / "examples.parquet", columns=["distractors"])["distractors"]
    return pc.max(pc.list_value_length(column)).as_py() or 0


def _parameters(encoder: Path) -> int:
    with safe_open(encoder / "model.safetensors", "np") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 (not a mapping)
    return sum(math.prod(shape) for shape in shapes)


def _refreshes(arm: str, active: Mapping[str, Mapping[str, Any]]) -> int:
    """Rounds of mining with an earlier arm's model, 0 with BM25's negatives."""
    source = active[arm]["negatives"]
    return 1 + _refreshes(source, active) if source in active else 0
