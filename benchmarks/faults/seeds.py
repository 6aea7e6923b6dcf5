"""Small files in every format that users bring."""

import bz2
import csv
import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
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
    {"question": "who?", "answer": ["Alpha"], "answers": [{"passage_id": "a", "offset": 0, "text": "Alpha"}]},
    {"question": "what?", "answer": "Beta"}
    | {"answers": [{"passage_id": p, "offset": 0, "text": text} for p, text in (("b", "Beta"), ("c", "B"))]},
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
        values = (json.dumps(value) if isinstance(value, list) else value for value in row.values())
        # A row of TSV is one line.
        writer.writerow(str(value).replace("\n", " ") if tab == "\t" else value for value in values)
    return out.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


QA = table(
    [{"question": "who?", "answers": ["Alpha"]}, {"question": "what?", "answers": ["Beta", "2"]}], "\t", header=False
)
DEV_SQUAD = re.sub(r'"q(?=\d)', '"dq', json.dumps(SQUAD)).encode()
ENTITIES = json.dumps([{"question": "Where was Ann born?", "answers": ["Rome"]}]).encode()
JUDGEMENTS = b"q1 0 a 1\nq2 0 b 1\nq2 0 c 2\n".replace(b" ", b"\t")
PAIRS = "a\tAlpha is here.\nb\tBeta, so it is.\nc\tGämma\n".encode()
BY_ID = {"q1": "who?", "q2": "what?", "t1": "when?", "t2": "where?"}
BEIR = (
    lines([{"_id": row["id"], "title": row["title"], "text": row["text"]} for row in PASSAGES]),
    lines([{"_id": key, "text": text} for key, text in BY_ID.items()]),
    *(text.encode() for text in (JUDGED, re.sub(r"(?m)^q(?=\d)", "t", JUDGED))),
)
TSVS = PAIRS, "\n".join(map("\t".join, BY_ID.items())).encode(), JUDGEMENTS, JUDGEMENTS.replace(b"q", b"t")


def zipped(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def packed(data: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """Compress in two streams, as pbzip2 does and Wikipedia's dumps are."""
    half = len(data) // 2
    return compress(data[:half]) + compress(data[half:])


zipped_twice = partial(packed, compress=partial(gzip.compress, mtime=0))


def unpacked(data: bytes) -> bytes:
    """All streams of bzip2; Python's own reader takes a damaged one behind the first for the end."""
    out = b""
    while data:
        stream = bz2.BZ2Decompressor()
        out += stream.decompress(data)
        if not stream.eof:
            raise EOFError("cut")
        data = stream.unused_data
    return out


def tarred(data: bytes) -> bytes:
    """An archive as HotpotQA's: bzip2 files in a bzip2 archive."""
    out, half = io.BytesIO(), data.find(b"\n", len(data) // 2) + 1
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, part in (("wiki/AA/wiki_00.bz2", data[:half]), ("wiki/AA/wiki_01.bz2", data[half:])):
            member = packed(part, bz2.compress)
            info = tarfile.TarInfo(name)
            info.size = len(member)
            archive.addfile(info, io.BytesIO(member))
    return packed(out.getvalue(), bz2.compress)


def untarred(data: bytes) -> bytes:
    return b"".join(members(data))


def members(data: bytes) -> list[bytes]:
    content = unpacked(data)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        parts = [unpacked(archive.extractfile(member).read()) for member in archive if member.isfile()]
        rest = content[archive.offset :]
    if any(rest) or len(rest) < tarfile.BLOCKSIZE - 1:
        raise ValueError("a header is damaged")
    return parts
