"""What a plain strict reading gives of a folder of files: lists of plain values by name. What is not as it should be
raises any exception."""

import ast
import csv
import gzip
import html
import json
import re
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.faults import seeds
from benchmarks.faults.seeds import Rows
from eadpr.atlas.texts import QUESTIONS as TEMPLATES
from eadpr.corpus.formats.columns import NAMES

Reading = dict[str, list]


def text_of(path: Path | zipfile.Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")


def rows_of(path: Path) -> Rows:
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        table = pq.read_table(path)
        table.validate(full=True)
        return table.to_pylist()
    if name.endswith(".tar.bz2"):
        return [row for part in seeds.members(path.read_bytes()) for row in json_of(part.decode("utf-8-sig"))]
    text = text_of(path)
    if name.endswith((".csv", ".tsv")):
        header, *rows = cells(text, max(",;\t", key=text.split("\n")[0].count) if name.endswith(".csv") else "\t")
        names = "\t".join(cell.strip() for cell in header).rstrip("\t").split("\t")
        return [dict(zip(names, [*row[: len(names)], *filter(None, row[len(names) :])], strict=True)) for row in rows]
    return json_of(text)


def json_of(text: str) -> Rows:
    """Parse JSON or JSON lines; NaN, which pandas writes where a table has no value, is null."""
    parse = partial(json.loads, parse_constant=lambda name: None if name == "NaN" else float(name))
    return parse(text) if text.lstrip().startswith("[") else [parse(line) for line in text.split("\n") if line.strip()]


def cells(text: str, tab: str = "\t", quoting: int = csv.QUOTE_MINIMAL) -> list[list[str]]:
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if tab != "\t":
        rows = csv.reader(lines, delimiter=tab, strict=True, skipinitialspace=f"{tab} " in lines[0])
        return [row for row in rows if any(row)]
    plain = [re.sub(r"\r?\n$", "", line).split("\t") for line in lines]
    quoted = [i for i, row in enumerate(plain) if any(cell[:1] == '"' for cell in row)]
    if quoting == csv.QUOTE_MINIMAL and quoted:
        for i in quoted:
            try:
                (plain[i],) = csv.reader([lines[i]], delimiter="\t", strict=True)
            except csv.Error:
                if i > quoted[0]:
                    raise
                break
    return [row for row in plain if any(row)]


def _field(kind: str, row: Mapping[str, Any], field: str) -> Any:
    return next((row[name] for name in NAMES[kind][field] if name in row), None)


def own_passages(rows: Rows) -> list:
    def passage_of(n: int, row: Mapping[str, Any]) -> tuple:
        key = _field("passages", row, "id")
        title, text = (_field("passages", row, field) or "" for field in ("title", "text"))
        return str(n if key is None else key), title, text

    return [passage_of(n, row) for n, row in enumerate(rows, start=1)]


def own_questions(rows: Rows, *, scored: bool = True) -> Reading:
    questions, contexts = [], []
    for row in rows:
        entry = {field: _field("questions", row, field) for field in ("question", "answers", "positives", "grades")}
        for field in ("answers", "positives"):
            value = entry[field]
            in_cells = not isinstance(row.get("positives"), list)
            if isinstance(value, str) and value.startswith("[" if in_cells else ("['", '["')):
                with suppress(ValueError, SyntaxError):
                    value = list(ast.literal_eval(value))
            entry[field] = value if isinstance(value, list) else [] if value in (None, "") else [value]
        grades = entry["grades"] or None
        if isinstance(grades, str):
            with suppress(ValueError):
                grades = json.loads(grades)
        scored_here = scored and grades is not None and entry["positives"]
        grades = (grades if isinstance(grades, list) else [grades]) if scored_here else [None] * len(entry["positives"])
        grades = [grade(number) for number in grades]
        questions.append((entry["question"], [str(item) if type(item) is int else item for item in entry["answers"]]))
        contexts += [
            (entry["question"], "positive", n, str(key), grade)
            for n, (key, grade) in enumerate(zip(entry["positives"], grades, strict=True))
        ]
    return {"questions": questions, "contexts": contexts}


def own_files(passages: str, questions: str) -> Callable[[Path], Reading]:
    return lambda folder: {
        "passages": own_passages(rows_of(folder / passages)),
        **own_questions(rows_of(folder / questions)),
    }


def grade(value: Any) -> float | None:
    number = None if value is None else float(np.float32(float(value)))
    assert number is None or np.isfinite(number), "a grade that is none"
    return number


def dpr_questions(rows: Rows, lists: Mapping[str, str]) -> Reading:
    contexts = []
    for row in rows:
        for name, role in lists.items():
            for n, context in enumerate(row.get(name, [])):
                key = next((context[key] for key in ("passage_id", "psg_id") if key in context), None)
                contexts.append((row["question"], role, n, None if key is None else str(key), None))
    return {"questions": [(row["question"], row.get("answers", [])) for row in rows], "contexts": contexts}


def dpr_passages(path: Path) -> list:
    return [(row["id"], row["title"], row["text"]) for row in rows_of(path)]


ROLES = {f"{role}_ctxs": role for role in ("positive", "negative", "hard_negative")}


def training(folder: Path) -> Reading:
    reading = dpr_questions(rows_of(folder / "train.json"), ROLES)
    for gold in rows_of(folder / "gold.jsonl"):
        pair = gold["question"], str(gold["passage_id"])
        assert any(pair == (context[0], context[3]) for context in reading["contexts"]), "gold of nothing"
    passages, texts = dpr_passages(folder / "psgs.tsv"), {}
    for row in rows_of(folder / "train.json"):
        for entry in (context for name in ROLES for context in row.get(name, [])):
            key = next((str(entry[key]) for key in ("passage_id", "psg_id") if key in entry), None)
            if key is not None and key not in {p[0] for p in passages}:
                texts.setdefault(key, (key, entry.get("title", ""), entry["text"]))
    return {"passages": passages + list(texts.values()), **reading}


def literal(cell: str) -> list[str]:
    return list(ast.literal_eval(cell))


def qa_csv(folder: Path) -> Reading:
    json.loads(text_of(folder / "gold.json"))["data"]
    questions = [(question, literal(answers)) for question, answers in cells(text_of(folder / "q.qa.csv"))]
    return {"questions": questions, "passages": dpr_passages(folder / "psgs.tsv")}


def ramdocs(folder: Path) -> Reading:
    return {"questions": [(row["question"], row["gold_answers"]) for row in rows_of(folder / "ramdocs.jsonl")]}


def facts(folder: Path) -> Reading:
    answers: dict[str, list[str]] = {}
    for name in ("P19.jsonl", "P20.jsonl"):
        for row in rows_of(folder / name):
            stated = answers.setdefault(TEMPLATES[name[:3]].replace("[X]", row["sub_label"]), [])
            stated += [row["obj_label"]] if row["obj_label"] not in stated else []
    return {"questions": list(answers.items())}


def entities(name: str) -> Callable[[Path], Reading]:
    def plain(folder: Path) -> Reading:
        rows = rows_of(folder / name) if not name.endswith(".zip") else []
        if name.endswith(".zip"):
            with zipfile.ZipFile(folder / name) as archive:
                paths = (path for path in archive.namelist() if re.search(r"(^|/)P\d+\.(train|dev|test)\.json$", path))
                rows = [row for path in paths for row in json.loads(text_of(zipfile.Path(archive, path)))]
        return {"questions": [(row["question"], row["answers"]) for row in rows]}

    return plain


def paq(folder: Path) -> Reading:
    questions = []
    for row in rows_of(folder / "paq.jsonl"):
        answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        questions += [(row["question"], list(dict.fromkeys([span["text"], *answers]))) for span in row["answers"]]
    return {"questions": questions}


def plain_title(given_title: str) -> str:
    return " ".join(unicodedata.normalize("NFC", html.unescape(given_title)).split())


def hotpot(pages: str) -> Callable[[Path], Reading]:
    def plain(folder: Path) -> Reading:
        passages = [(row["title"], re.sub(r"\s", " ", "".join(row["text"]))) for row in rows_of(folder / pages)]
        rows = rows_of(folder / "hotpot.json")
        return {
            "passages": [(plain_title(title).replace(" ", "_"), plain_title(title), text) for title, text in passages],
            "questions": [(row["question"], [row["answer"]]) for row in rows],
        }

    return plain


def alike(folder: Path) -> Reading:
    def entry_of(row: Mapping[str, Any]) -> tuple:
        field = "question_id" if "question_id" in row else "question"
        return field, str(row[field]), row.get("title"), row["text"]

    return {"alike": list(map(entry_of, rows_of(folder / "alike.jsonl")))}


def judged(corpus: str, queries: str, *qrels: str) -> Callable[[Path], Reading]:
    def plain(folder: Path) -> Reading:
        rows, queried = (
            rows_of(folder / name)
            if name.endswith("jsonl")
            else [{"_id": row[0], "text": row[1]} for row in cells(text_of(folder / name), quoting=csv.QUOTE_NONE)]
            for name in (corpus, queries)
        )
        passages = own_passages(rows)
        texts = {str(row["_id" if "_id" in row else "id"]): row["text"] for row in queried}
        questions, contexts = [], []
        for path in qrels:
            judged = judgements(folder / path)
            for key, question in texts.items():
                relevant = sorted((pair for pair in judged.pop(key, []) if pair[0] > 0), key=lambda pair: -pair[0])
                assert all(passage_id in {p[0] for p in passages} for _, passage_id in relevant), "not in the corpus"
                questions += [(question, [])] if relevant else []
                contexts += [(question, "positive", n, passage, None) for n, (_, passage) in enumerate(relevant)]
            assert not judged, "judgements of no question"
        return {"passages": passages, "questions": questions, "contexts": contexts}

    return plain


def judgements(path: Path) -> dict[str, list[tuple[float, str]]]:
    judged: dict[str, list[tuple[float, str]]] = {}
    for n, row in enumerate(cells(text_of(path), quoting=csv.QUOTE_NONE)):
        if n == 0 and len(row) == 3 and not re.match(r"\s*[-+]?[\d.]|\s*[-+]?(nan|inf)", row[-1], re.IGNORECASE):
            continue  # a header
        assert np.isfinite(float(row[-1])), "a grade that is none"
        pairs = judged.setdefault(row[0], [])
        if (pair := (float(row[-1]), row[-2])) not in pairs:
            assert row[-2] not in [passage for _, passage in pairs], "a passage with two grades"
            pairs.append(pair)
    return judged


def squad(folder: Path) -> Reading:
    passages, questions, contexts = {}, [], []
    articles = [row for name in ("squad.json", "dev.json") for row in json_of(f"[{text_of(folder / name)}]")[0]["data"]]
    for article in articles:
        for paragraph in article["paragraphs"]:
            pair = article.get("title") or "", paragraph["context"]
            key = passages.setdefault(pair, f"{'_'.join(pair[0].split())}/{len(passages) + 1}".removeprefix("/"))
            for qa in paragraph["qas"]:
                if not qa.get("is_impossible") and qa["answers"]:
                    assert all(int(a.get("answer_start") or 0) >= -1 for a in qa["answers"]), "before the text"
                    assert all(a["text"] in pair[1] for a in qa["answers"]), "not there"
                    questions.append((qa["question"], list(dict.fromkeys(a["text"] for a in qa["answers"]))))
                    contexts.append((qa["question"], "positive", 0, key, None))
    return {"passages": [(key, *pair) for pair, key in passages.items()], "questions": questions, "contexts": contexts}


def probed(name: str) -> Callable[[Path], Reading]:
    def plain(folder: Path) -> Reading:
        columns = {"question": ("question", "query"), "title": ("title", "headline"), "text": NAMES["probed"]["text"]}
        rows = [
            {field: next((row[n] for n in names if n in row), "") for field, names in columns.items()}
            for row in rows_of(folder / name)
        ]
        return {"rows": [(row["question"], row["title"] or "", row["text"]) for row in rows]}

    return plain


def words(folder: Path) -> Reading:
    """Return the words alone of the documents' texts, since documents are cut at headings."""
    questions = [row for name in ("q.jsonl", "t.jsonl") for row in rows_of(folder / name)]
    texts = [text_of(path) for path in sorted((folder / "docs").iterdir())]
    text = re.sub(r"(?m)^#.*", "", "\n".join(texts))
    return {"words": re.findall(r"\w+", text), **own_questions(questions, scored=False)}
