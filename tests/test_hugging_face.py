"""Tables of `datasets`: saved folders, and names of the Hub, for which a server of this machine stands."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from eadpr.corpus.formats.own import read_raw
from eadpr.corpus.formats.shapes import recognise
from eadpr.library.texts import read_rows
from tests.loopback import serving

datasets = pytest.importorskip("datasets")
pytestmark = pytest.mark.formats

SQUAD = {"question": "Where did Ada live?", "context": "Ada lived in London.", "answers": {"text": ["London"] * 2}}
SQUAD["answers"]["answer_start"] = [13, 13]
PASSAGES = [{"id": "p1", "text": "Ada lived in London."}]
QUESTIONS = [{"question": "Where did Ada live?", "answers": ["London"], "positives": ["p1"]}]
COMMIT = "a" * 40


def hub(files):
    """Answer what huggingface_hub asks about the data set org/qa with these files."""
    entries = [{"type": "file", "path": name, "size": len(data), "oid": COMMIT} for name, data in files.items()]

    def answer(to):
        request = to.rfile.read(int(to.headers.get("Content-Length") or 0))
        path, body = to.path.partition("?")[0], None
        if "/resolve/" in path:
            body = files.get(path.split("/", 6)[-1])
        elif path.startswith("/api/datasets/org/qa/paths-info/"):
            body = json.dumps([entry for entry in entries if entry["path"].encode() in request]).encode()
        elif path.startswith("/api/datasets/org/qa/tree/"):
            body = json.dumps(entries).encode()
        elif path.startswith("/api/datasets/org/qa"):
            siblings = [{"rfilename": name} for name in files]
            body = json.dumps({"id": "org/qa", "sha": COMMIT, "siblings": siblings}).encode()
        to.send_response(404 if body is None else 200)
        headers = {"ETag": f'"{len(body or b"")}"', "X-Repo-Commit": COMMIT, "Content-Length": str(len(body or b""))}
        for name, value in (headers | ({"X-Error-Code": "EntryNotFound"} if body is None else {})).items():
            to.send_header(name, value)
        to.end_headers()
        if to.command != "HEAD":
            to.wfile.write(body or b"")

    return serving(do_GET=answer, do_POST=answer, do_HEAD=answer)


READ = """
import pathlib, sys
from eadpr.corpus.formats.shapes import recognise
from eadpr.library.texts import as_rows
print(*(row.fields for row in as_rows(sys.argv[1])))
with recognise([pathlib.Path(sys.argv[1])], passages=None, questions=None, test_questions=None) as files:
    print(*(path.read_text() for path in files.paths))
"""


def test_a_name_of_the_hub_is_a_table(tmp_path):
    files = {f"{split}-0.parquet": pd.DataFrame([SQUAD]).to_parquet() for split in ("train", "test")}
    with hub(files) as http:
        home = {"HF_ENDPOINT": f"http://127.0.0.1:{http.server_port}", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        read, refused = (
            subprocess.run([sys.executable, "-c", READ, name], env=os.environ | home, capture_output=True, text=True)
            for name in ("hf:org/qa:default:test", "hf:org/qa")
        )
    assert "'question': 'Where did Ada live?'" in read.stdout, read.stderr
    assert "'answers': ['London', 'London']" in read.stdout
    expected = '{"question": "Where did Ada live?", "answers": ["London", "London"], "answer_start": [13], '
    assert f'{{"id": "1", "title": "", "text": "Ada lived in London."}}\n {expected}"positives": ["1"]}}' in read.stdout
    assert "has the splits train, test; name one, hf:NAME:CONFIG:SPLIT" in refused.stderr


@pytest.mark.parametrize(("starts", "gold"), [([13, None], [13]), ([-1], None), ([None], None), ([13.5], None)])
def test_where_answers_begin_is_gold_where_it_is_known(tmp_path, starts, gold):
    row = SQUAD | {"answers": {"text": ["London"], "answer_start": starts}}
    datasets.Dataset.from_list([row]).save_to_disk(tmp_path / "squad")
    with recognise([tmp_path / "squad"], passages=None, questions=None, test_questions=None) as files:
        ((question,),) = (list(read_raw(path)) for path in files.questions.values())
    assert question.fields.get("answer_start") == gold


def test_saved_tables_are_rows_passages_and_questions(tmp_path):
    datasets.Dataset.from_list([SQUAD]).save_to_disk(tmp_path / "squad")
    datasets.Dataset.from_list([SQUAD]).to_parquet(tmp_path / "squad.parquet")
    for row in (*read_rows(tmp_path / "squad"), *read_rows(tmp_path / "squad.parquet")):
        assert (row["question"], row["answers"], row["text"]) == (SQUAD["question"], ["London"] * 2, SQUAD["context"])
    (tmp_path / "bad.parquet").touch()
    with pytest.raises(ValueError, match=r"bad\.parquet, after row 0: damaged"):
        next(read_rows(tmp_path / "bad.parquet"))
    datasets.Dataset.from_list(PASSAGES).save_to_disk(tmp_path / "texts")
    splits = {name: datasets.Dataset.from_list(QUESTIONS) for name in ("train", "test")}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "asked")
    paths = [tmp_path / "texts", tmp_path / "asked" / "train", tmp_path / "asked" / "test"]
    with recognise(paths, passages=None, questions=None, test_questions=None) as files:
        rows = [[row.fields for row in read_raw(path)] for path in (files.passages, *files.questions.values())]
    assert rows == [PASSAGES, QUESTIONS, QUESTIONS]
    with pytest.raises(ValueError, match="has the splits train, test; name one"):
        next(read_rows(tmp_path / "asked"))
