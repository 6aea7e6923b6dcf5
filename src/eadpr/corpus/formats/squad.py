"""SQuAD's JSON: paragraphs are the passages, and questions come with the places of their answers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eadpr.corpus.formats.file_rows import read_data
from eadpr.corpus.formats.own import OwnFiles, write_rows
from eadpr.corpus.rows import Row, RowError, excerpt

_TESTS = re.compile(r"(^|[._-])(dev|test|valid|validation)([._-]|$)", re.IGNORECASE)


class SquadParagraph(NamedTuple):
    """The rows `questions` and `gold` are of questions with an answer; `unanswered` counts the others."""

    title: str
    text: str
    questions: list[dict[str, Any]]
    gold: list[dict[str, Any]]
    unanswered: int


def convert_squad(paths: Sequence[Path], out: Path) -> OwnFiles:
    """Write one file, or one to train on and one to test with, as a user's own files in `out`. Passages are called
    `Title/number`, and questions without an answer are left out."""
    tests = [path for path in paths if _TESTS.search(path.name)]
    if len(paths) > 2 or (len(paths) == 2 and len(tests) != 1):
        raise ValueError(
            f"{', '.join(map(str, paths))}: give one SQuAD file, or two of which one has dev, test or valid in its name"
        )
    splits = {"train": paths[0]} if len(paths) == 1 else {"test" if path in tests else "train": path for path in paths}
    ids: dict[tuple[str, str], str] = {}
    questions, gold, unanswered = {}, {}, 0
    for split, path in sorted(splits.items(), reverse=True):
        question_rows: list[dict[str, Any]] = []
        gold_rows: list[dict[str, Any]] = []
        for paragraph in read_paragraphs(path):
            key = paragraph.title, paragraph.text
            passage = ids.setdefault(key, f"{'_'.join(paragraph.title.split())}/{len(ids) + 1}")
            question_rows += [row | {"positives": [passage]} for row in paragraph.questions]
            gold_rows += [row | {"passage_id": passage} for row in paragraph.gold]
            unanswered += paragraph.unanswered
        questions[split] = write_rows(out / f"questions-{split}.jsonl", question_rows)
        gold[split] = write_rows(out / f"gold-{split}.jsonl", gold_rows)
    passages = ({"id": passage, "title": title, "text": text} for (title, text), passage in ids.items())
    description = "SQuAD's JSON"
    if unanswered:
        description += f"; {unanswered:,} questions without an answer are left out"
    return OwnFiles(write_rows(out / "passages.jsonl", passages), questions, gold, description=description)


def read_answered(path: Path) -> Iterator[dict[str, Any]]:
    """Read id, question, answers, title and text of every question that has an answer."""
    for paragraph in read_paragraphs(path):
        for row in paragraph.questions:
            yield row | {"title": paragraph.title, "text": paragraph.text}


def read_paragraphs(path: Path) -> Iterator[SquadParagraph]:
    for article in read_data(path).objects("data"):
        title = article.text("title")
        for row in article.objects("paragraphs"):
            paragraph, unanswered = SquadParagraph(title, row.text("context"), [], [], 0), 0
            for question in row.objects("qas"):
                answers = dict.fromkeys(_read_answers(question, paragraph.text))
                if not answers or question.fields.get("is_impossible"):
                    unanswered += 1
                    continue
                text, texts = question.text("question"), list(dict.fromkeys(answer for answer, _ in answers))
                paragraph.questions.append({"id": question.id("id"), "question": text, "answers": texts})
                for answer, start in answers:
                    paragraph.gold.append({"question": text, "answer": answer, "answer_start": start})
            yield paragraph._replace(unanswered=unanswered)


def _read_answers(question: Row, context: str) -> Iterator[tuple[str, int]]:
    for answer in question.objects("answers"):
        text, start = answer.text("text"), answer.whole("answer_start", "an offset")
        if (there := context[start : start + len(text)]) != text and not question.fields.get("is_impossible"):
            reason = f"points at {excerpt(there)}, not at {excerpt(text)}; mend it"
            raise RowError(question.where, f"answer_start {start}", reason)
        yield text, start
