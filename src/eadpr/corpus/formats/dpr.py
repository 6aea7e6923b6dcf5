"""DPR's files of questions, with their passages or alone (Karpukhin et al., 2020)."""

from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats.columns import parse_list
from eadpr.corpus.formats.file_rows import read_objects, read_table
from eadpr.corpus.rows import ROLES, GivenContext, GivenQuestion, Row, RowError

LISTS = {f"{role}_ctxs": role for role in ROLES} | {"ctxs": "positive"}  # the last in files of NQ's gold passages
ID_KEYS = ("passage_id", "psg_id")  # NQ has the first, some other sets the second


def read_questions(path: Path) -> Iterator[GivenQuestion]:
    """Read a JSON list or JSONL of question, answers and passages, one at a time: NQ's is larger than memories."""
    for row in read_objects(path):
        answers = row.texts("answers") if "answers" in row.fields else []
        contexts = [context for name, role in LISTS.items() for context in _read_contexts(row, name, role)]
        yield GivenQuestion(row.where, row.number, row.text("question"), answers, contexts=contexts)


def _read_contexts(item: Row, name: str, role: str) -> Iterator[GivenContext]:
    for row in item.objects(name) if name in item.fields else ():
        title, text = row.optional("title"), row.optional("text")
        id_key = next((key for key in ID_KEYS if key in row.fields), None)
        if id_key is None and text is None:
            raise RowError(row.where, "", f"has neither {' nor '.join(ID_KEYS)} nor text")
        yield GivenContext(role, row.number, row.id(id_key) if id_key else None, title or "", text)


def read_qa_csv(path: Path) -> Iterator[GivenQuestion]:
    """Read DPR's question sets (`.qa.csv`): two cells, question and list of answers, no header, quoted as in CSV."""
    for row in read_table(path, ("question", "answers")):
        row.fields["answers"] = parse_list(row.fields["answers"], row.where, "answers")
        yield GivenQuestion(row.where, row.number, row.text("question"), row.texts("answers"))
