"""Questions with positives that hold no answer, so that where it stands cannot be learnt from them."""

import re
from typing import Any

from eadpr.corpus.rows import excerpt
from eadpr.storage import engine
from eadpr.text.answers import AnswerMatcher

_POSITIVES = """
SELECT n, q.id, q.question, q.answers, q.answer_kind, p.text
FROM numbered q JOIN named USING (n) JOIN passages p ON p.id = passage_id
WHERE role = 'positive' AND len(q.answers) > 0 AND q.answer_kind != 'yes-no' AND p.text IS NOT NULL
"""


def find_unheld(connection: engine.Connection) -> str:
    """Say of how many questions no positive holds an answer, with the first and a likely cause; empty for none."""
    matcher, answered = AnswerMatcher(size=4096), set()
    unheld: dict[int, dict[str, Any]] = {}
    for row in engine.rows(connection, _POSITIVES):
        if row["n"] in answered:
            continue
        if matcher.matches(row["answers"], [row["text"]], row["answer_kind"], question=row["question"])[0]:
            answered.add(row["n"])
            unheld.pop(row["n"], None)
        else:
            unheld[row["n"]] = row
    if not unheld:
        return ""
    first = unheld[min(unheld)]
    answers, cause = first["answers"], "they may say it in other words"
    if first["answer_kind"] == "regex":
        cause = "a pattern may be wrong, or take too long"
    elif any(map(re.compile(r"&#?\w+;").search, answers)):
        cause = "HTML's entities are no text"
    elif any(map(re.compile(r"[;|]").search, answers)):
        cause = "several answers are a list, not one text"
    total = len(answered) + len(unheld)
    counts = f"{len(unheld):,} of {total:,} questions have positives that hold no answer ({cause})"
    return f"{counts}, as {first['id']}, {excerpt(first['question'])}: {excerpt(answers)}"
