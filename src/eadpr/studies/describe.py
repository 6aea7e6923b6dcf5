"""Tables of a collection (EADPR, Table 1) and its relations (Sciavolino, Table 3.1)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.compute as pc
import typer

from eadpr.report import markdown as md
from eadpr.settings.command import active_collection
from eadpr.storage import tables
from eadpr.storage.records import Passage, Positive, Question, SetMember


def main(name: str = typer.Argument(None, help="The collection; by default the one in params.yaml.")) -> str:
    """Show tables of the collection and its relations."""
    data = Path("data") / (name or active_collection())
    parts = [describe_collection(data / "records", data / "positives" / "positives.parquet")]
    if relations := describe_relations(data / "records"):
        parts += ["## Relations", relations]
    return "\n\n".join([f"# {data.name}", *parts])


def describe_collection(records: Path, positives: Path) -> str:
    """Return the number of passages, and where the first positive of each set's questions comes from."""
    passages = records / "passages.parquet"
    count, batches = tables.count(passages, Passage), tables.batches(passages, Passage, columns=["text"])
    words = sum(pc.sum(pc.count_substring_regex(batch["text"], r"\S+")).as_py() or 0 for batch in batches)
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
