"""Small files in every format that users bring."""

import bz2
import csv
import io
import json
import tarfile
import zipfile
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]

PASSAGES = [
    {"id": "a", "title": "T", "text": "Alpha is here."},
    {"id": "b", "title": "T", "text": 'Beta, "so" it is; 2 km.'},
    {"id": "c", "title": "Ü", "text": "Gämma ends.\nTwice."},
]
ASKED = [
    {"question": "who?", "answers": ["Alpha"], "positives": ["a"]},
    {"question": "what, then?", "answers": ["Beta", "2"], "positives": ["b", "c"]},
]
CONTEXTS = [{"title": "T", "text": "Alpha is here.", "passage_id": "a", "score": 1.5, "title_score": 0}]
TRAINING = [
    {"dataset": "x", "question": "who?", "answers": ["Alpha"], "positive_ctxs": CONTEXTS, "negative_ctxs": []}
    | {"hard_negative_ctxs": [{"title": "T", "text": PASSAGES[1]["text"], "psg_id": "b", "score": "2.5"}]},
    {"question": "what?", "answers": [], "positive_ctxs": [{"text": "Another one."}]},
]
GOLD = [{"question": "who?", "passage_id": "a", "answer": "Alpha", "answer_start": 0}]
GOLD_INFO = {"data": [{"title": "T", "context": "Alpha is here.", "short_answers": ["Alpha"], "question": "who?"}]}
RAMDOCS = [
    {"question": "who?", "gold_answers": ["Alpha"], "documents": [{"text": "Alpha came.", "type": "correct"}]},
    {"question": "when?", "gold_answers": ["2"]}
    | {"documents": [{"text": "At 2.", "type": "correct"}, {"text": "3", "type": "noise"}]},
]  # fmt: skip
FACT = [{"sub_label": "Ann", "obj_label": "Rome", "uuid": "u1"}, {"sub_label": "Bo", "obj_label": "Oslo", "uuid": "u2"}]
PAQ_ROWS = [
    {"question": "who?", "answer": ["Alpha"], "answers": [{"passage_id": "a", "text": "Alpha"}]},
    {"question": "what?", "answer": "Beta"}
    | {"answers": [{"passage_id": "b", "text": "Beta"}, {"passage_id": "c", "text": "B"}]},
]  # fmt: skip
PAGES = [{"id": 1, "title": "Ann &amp; Bo", "text": ["Ann is.", " Bo was."]}, {"title": "Rome", "text": ["A city."]}]
HOTPOT = [
    {"_id": "q1", "question": "who?", "answer": "city", "type": "bridge", "level": "easy"}
    | {"supporting_facts": [["Ann & Bo", 0], ["Rome", 0]]}
    | {"context": [["Ann & Bo", ["Ann is.", " Bo was."]], ["Rome", ["A city."]]]}
]  # fmt: skip
ALIKE = [{"question": "who?", "text": "Alpha went.", "title": "T"}, {"question_id": "q1", "text": "x"}]
SQUAD = {"version": "1.1", "data": [{"title": "T x", "paragraphs": [
    {"context": "Alpha is here.", "qas": [
        {"id": "q1", "question": "who?", "answers": [{"text": "Alpha", "answer_start": 0}]},
        {"id": "q2", "question": "when?", "answers": [], "is_impossible": True},
    ]},
    {"context": "Beta is there.", "qas": [
        {"id": "q3", "question": "what?", "answers": [{"text": "there", "answer_start": 8}]},
    ]},
]}]}  # fmt: skip
JUDGED = "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\nq2\tc\t2\nq2\ta\t0\n"
BEIR = [{"_id": row["id"], "title": row["title"], "text": row["text"]} for row in PASSAGES]
PAIRS = "a\tAlpha is here.\nb\tBeta, so it is.\nc\tGämma\n"
DOCUMENT = "# Top\n\nAlpha is here.\n\n## Below ##\n\nBeta *is* there.\n"
PROBED = [{"question": "who?", "answers": "Alpha", "text": "Alpha is here. It rains.", "title": "T"}]


def lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table(rows: Rows, tab: str, *, header: bool = True) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=tab, lineterminator="\n")
    if header:
        writer.writerow(rows[0])
    for row in rows:
        values = (json.dumps(one) if isinstance(one, list) else one for one in row.values())
        # A row of TSV is one line.
        writer.writerow(str(one).replace("\n", " ") if tab == "\t" else one for one in values)
    return out.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


QA = table(
    [{"question": "who?", "answers": ["Alpha"]}, {"question": "what?", "answers": ["Beta", "2"]}], "\t", header=False
)
ENTITIES = json.dumps([{"question": "Where was Ann born?", "answers": ["Rome"]}]).encode()
JUDGEMENTS = b"q1 0 a 1\nq2 0 b 1\nq2 0 c 2\n".replace(b" ", b"\t")
QUERIES = [
    {"_id": "q1", "text": "who?"},
    {"_id": "q2", "text": "what?"},
    {"_id": "t1", "text": "when?"},
    {"_id": "t2", "text": "where?"},
]


def zipped(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(data: bytes, member: str = "wiki/AA/wiki_00.bz2") -> bytes:
    """An archive as HotpotQA's: one bzip2 file in a bzip2 archive."""
    out, packed = io.BytesIO(), bz2.compress(data)
    with tarfile.open(fileobj=out, mode="w:bz2") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(packed)
        archive.addfile(info, io.BytesIO(packed))
    return out.getvalue()


def untarred(data: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return b"".join(bz2.decompress(archive.extractfile(one).read()) for one in archive if one.isfile())
