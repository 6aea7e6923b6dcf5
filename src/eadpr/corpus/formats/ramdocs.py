"""RAMDocs (Wang et al., 2025): questions about names that several things share, with documents of type correct, misinfo
or noise. The correct ones are positives; the others look alike, and become near-duplicates."""

from collections.abc import Iterator
from pathlib import Path

from eadpr.corpus.formats.file_rows import read_objects
from eadpr.corpus.rows import GivenContext, GivenQuestion, unexpected

TYPES = ("correct", "misinfo", "noise")


def read_ramdocs(path: Path) -> Iterator[GivenQuestion]:
    """Read questions with their documents, which have neither id nor title: prepare.add_context_passages must let them
    join the corpus. The role of a document that is not correct is its type.

    Documents of a row with one text are one, of the first type; noise that holds NUL (17 binary files) is left out.
    """
    for row in read_objects(path):
        roles: dict[str, str] = {}
        for document in row.objects("documents"):
            role = document.text("type")
            if role not in TYPES:
                raise unexpected(document.where, "type", role, f"one of {', '.join(TYPES)}")
            if role != "noise" or "\0" not in str(document.value("text")):
                roles.setdefault(document.text("text"), "positive" if role == "correct" else role)
        positives_first = sorted(roles.items(), key=lambda item: item[1] != "positive")
        contexts = [GivenContext(role, n, None, text=text) for n, (text, role) in enumerate(positives_first)]
        question, answers = row.text("question"), row.texts("gold_answers")
        yield GivenQuestion(row.where, row.number, question, answers, contexts=contexts)
