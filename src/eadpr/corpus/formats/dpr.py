"""DPR's files of questions with their passages (Karpukhin et al., 2020)."""

from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.rows import ROLES, GivenContext, GivenQuestion, Row, RowError

ID_KEYS = ("passage_id", "psg_id")  # NQ has the first, some other sets the second


def read_training(path: Path) -> Iterator[GivenQuestion]:
    """Read a training file, a JSON list or JSONL, one item at a time: NQ's is larger than most memories."""
    for row in read_objects(path):
        answers = row.texts("answers") if "answers" in row.fields else []
        contexts = [context for role in ROLES for context in _contexts(row, f"{role}_ctxs", role)]
        yield GivenQuestion(row.where, row.number, row.text("question"), answers, contexts=contexts)


def read_contexts(path: Path) -> Iterator[GivenQuestion]:
    """Read JSONL of question, answers and `ctxs`, the positives (NQ's gold passages)."""
    for row in read_objects(path):
        question, answers = row.text("question"), row.texts("answers")
        row.value("ctxs")
        contexts = _contexts(row, "ctxs", "positive")
        yield GivenQuestion(row.where, row.number, question, answers, contexts=contexts)


def _contexts(item: Row, name: str, role: str) -> list[GivenContext]:
    contexts = []
    for row in item.objects(name) if name in item.fields else ():
        title, text = row.optional("title"), row.optional("text")
        id_key = next((key for key in ID_KEYS if key in row.fields), None)
        if id_key is None and text is None:
            raise RowError(row.where, "", f"has neither {' nor '.join(ID_KEYS)} nor text")
        contexts.append(GivenContext(role, row.number, row.id(id_key) if id_key else None, title or "", text))
    return contexts
