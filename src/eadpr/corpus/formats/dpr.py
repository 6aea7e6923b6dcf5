"""DPR's files (Karpukhin et al., 2020): passages as TSV, and questions with their passages as training JSON."""

from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats import file_rows
from eadpr.corpus.rows import ROLES, GivenContext, GivenPassage, GivenQuestion, Row, rows

HEADER = ("id", "text", "title")
LISTS = {f"{role}_ctxs": role for role in ROLES}
ID_KEYS = ("passage_id", "psg_id")  # NQ has the first, some other sets the second


def passages(path: Path, *, strip_quotes: bool = False) -> Iterator[GivenPassage]:
    """Rows of `psgs_w100.tsv`: a header with id, text and title in any order, cells quoted as in CSV.

    DPR's own reader also strips quotes from both ends of the text, and with them those that belong to it;
    `strip_quotes` does the same.
    """
    for where, row in file_rows.tsv(path, needed=HEADER):
        yield where, row["id"], row["title"], row["text"].strip('"') if strip_quotes else row["text"], None


def training(path: Path) -> Iterator[GivenQuestion]:
    """Items of a training file, a JSON list or JSONL, one at a time: the file of NQ is larger than most memories."""
    for row in rows(path):
        answers = row.texts("answers") if "answers" in row.fields else []
        found = [
            context for name, role in LISTS.items() if name in row.fields for context in contexts_of(row, name, role)
        ]
        yield _question(row, answers, found)


def contexts(path: Path) -> Iterator[GivenQuestion]:
    """JSONL of question, answers and `ctxs`, whose passages are the positives (NQ's gold passages)."""
    return (_question(row, row.texts("answers"), contexts_of(row, "ctxs", "positive")) for row in rows(path))


def _question(row: Row, answers: list[str], found: list[GivenContext]) -> GivenQuestion:
    return GivenQuestion(row.where, row.number, row.text("question"), answers, contexts=found)


def contexts_of(item: Row, name: str, role: str) -> list[GivenContext]:
    """The passages of one list of an item."""
    return [_context(row, role) for row in item.objects(name)]


def _context(row: Row, role: str) -> GivenContext:
    title, text = row.optional("title"), row.optional("text")
    id_key = next((key for key in ID_KEYS if key in row.fields), None)
    if id_key is None and text is None:
        raise ValueError(f"{row.where} has neither {' nor '.join(ID_KEYS)} nor text")
    return GivenContext(role, row.number, row.id(id_key) if id_key else None, title or "", text)
