"""DPR's files (Karpukhin et al., 2020): passages as TSV, and questions with their passages as training JSON."""

from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats.file_rows import read_objects, read_table
from eadpr.corpus.rows import ROLES, GivenContext, GivenPassage, GivenQuestion, Row, RowError

HEADER = ("id", "text", "title")
ID_KEYS = ("passage_id", "psg_id")  # NQ has the first, some other sets the second


def read_passages(path: Path, *, strip_quotes: bool = False) -> Iterator[GivenPassage]:
    """Read the rows of `psgs_w100.tsv`: a header with id, text and title in any order, cells quoted as in CSV.

    DPR's own reader also strips quotes from both ends of the text, and with them those that belong to it;
    `strip_quotes` does the same.
    """
    for where, _, row in read_table(path, needed=HEADER):
        yield where, row["id"], row["title"], row["text"].strip('"') if strip_quotes else row["text"], None


def read_training(path: Path) -> Iterator[GivenQuestion]:
    """Read a training file, a JSON list or JSONL, one item at a time: NQ's is larger than most memories."""
    for row in read_objects(path):
        answers = row.texts("answers") if "answers" in row.fields else []
        lists = [(f"{role}_ctxs", role) for role in ROLES if f"{role}_ctxs" in row.fields]
        contexts = [context for name, role in lists for context in _contexts(row, name, role)]
        yield GivenQuestion(row.where, row.number, row.text("question"), answers, contexts=contexts)


def read_contexts(path: Path) -> Iterator[GivenQuestion]:
    """Read JSONL of question, answers and `ctxs`, the positives (NQ's gold passages)."""
    for row in read_objects(path):
        question, answers = row.text("question"), row.texts("answers")
        contexts = _contexts(row, "ctxs", "positive")
        yield GivenQuestion(row.where, row.number, question, answers, contexts=contexts)


def _contexts(item: Row, name: str, role: str) -> list[GivenContext]:
    contexts = []
    for row in item.objects(name):
        title, text = row.optional("title"), row.optional("text")
        id_key = next((key for key in ID_KEYS if key in row.fields), None)
        if id_key is None and text is None:
            raise RowError(item.where, f"{name}[{row.number}]", f"has neither {' nor '.join(ID_KEYS)} nor text")
        contexts.append(GivenContext(role, row.number, row.id(id_key) if id_key else None, title or "", text))
    return contexts
