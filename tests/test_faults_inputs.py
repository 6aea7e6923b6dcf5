"""Files with one thing changed: some drawn by chance, and those that were once read wrong."""

import gzip
import json

import pytest

from benchmarks.faults import inputs, seeds
from eadpr.settings import command as commands

FORMATS = {one.name: one for one in (*inputs.FORMATS, *inputs.SETTINGS)}
DIGITS = "9" * 5000
ZIP = FORMATS["EntityQuestions, zip"].files["e.zip"]
SQUAD_OPEN = "data/collections/squad-open.yaml"


@pytest.mark.parametrize(("name", "file", "change", "said"), [
    ("own gzip", "p.jsonl.gz", gzip.compress(f'{{"id": {DIGITS}}}'.encode(), mtime=0), "p.jsonl.gz, line 1: malformed"),
    ("own JSON list", "q.json", (b'"who?"', DIGITS), "malformed JSON: brackets nested too deep"),
    ("own CSV", "q.csv", (b"[1.0]", "[" * 99_999), "q.csv, line 2: grades is '[[[["),
    ("own CSV", "q.csv", (b"[1.0]", "[1e39]"), "q.csv, line 2: grades is '[1e39]', expected a list of 1"),
    ("own TSV", "q.tsv", (b"question", '"a\nb"'), r"(there are 'a\nb', answers, positives, grades); add"),
    ("own TSV", "p.tsv", (b"\tT\t", '\t"T"x\t'), "p.tsv, line 2: '\\t' expected after"),
    ("own Parquet", "p.parquet", b"PAR1" + b"\x0f" * 40 + b"\x14\0\0\0PAR1", "p.parquet: damaged after row 0, or not"),
    ("DPR training", "gold.jsonl", (b'"passage_id"', '"\\u001b[31m"'), r"is missing (it has question, '\x1b[31m', "),
    ("EntityQuestions, zip", "e.zip", (b"PK\x03\x04", "PK\x03\x05"), "e.zip/a/P19.dev.json is damaged or encrypt"),
    ("EntityQuestions, zip", "e.zip", seeds.zipped({"P19.dev.json": b"\n"}), "e.zip/P19.dev.json holds no questions"),
    ("EntityQuestions, zip", "e.zip", ZIP[:345] + b"\n" + ZIP[345:], "a/P19.dev.json is damaged or encrypted ([Errno"),
    ("BEIR", "qrels/test.tsv", (b"t2\tc\t2", "t2\tc\tnan"), "qrels/test.tsv, line 4: grade is 'nan', expected a"),
    ("BEIR", "qrels/test.tsv", b"query-id\tcorpus-id\tscore\nt1\ta\t0\n", "qrels/test.tsv has no passage with a grade"),
    ("MS MARCO", "queries.tsv", (b"t2\t", "t1\t"), "queries.tsv, line 4: question id 't1' stands twice"),
    ("MS MARCO", "collection.tsv", (b"c\tG", "b\tx\nc\tG"), "given, made into passages.jsonl, line 3: passage id 'b'"),
    ("MS MARCO", "collection.tsv", (b"Alpha is here.", " "), "collection.tsv, line 1: text is empty"),
    ("SQuAD", "dev.json", b'{"data": "\xe9' + b"x" * 5000, "dev.json: expected a JSON object with a list `data` ('"),
    ("SQuAD", "dev.json", (b'"answers"', json.dumps("x" * 5000)), "answers' is missing (it has id, question, xxx"),
    ("rows to probe, rows.csv", "rows.csv", b"", "rows.csv holds no rows of question and text"),
    ("params.yaml", "params.yaml", (b"collection: atlas", "collection: a\ncollection: b"), "YAML: line 3, found dupl"),
    ("params.yaml", "params.yaml", (b"collection: atlas", "collection: {[[1]]: a}"), "YAML: unhashable type: 'list'"),
    ("params.yaml", "params.yaml", (b"model: scratch", f"model: {'-' * 300}"), "base.model: '-----"),
    ("a collection's file", SQUAD_OPEN, b"a: " + b"[" * 99 + b"]" * 99, f"{SQUAD_OPEN}:1: nested too deep"),
])  # fmt: skip
def test_what_was_once_read_wrong_is_refused_in_a_line(tmp_path, name, file, change, said):
    of, given = FORMATS[name], tmp_path / "given"
    data = of.files[file].replace(change[0], change[1].encode()) if isinstance(change, tuple) else change
    assert data != of.files[file]
    for path, content in {**of.files, file: data}.items():
        (given / path).parent.mkdir(parents=True, exist_ok=True)
        (given / path).write_bytes(content)
    with pytest.raises(commands.USER_ERRORS) as refused:
        of.read(given)
    line = commands.format_error(refused.value)
    assert said in line
    assert line.isprintable()
    assert len(line) <= commands.LONGEST


@pytest.mark.nightly
def test_a_share_of_the_changes_is_read_right_or_refused(tmp_path):
    counts = inputs.run(7, tmp_path, 0.012)
    assert sum(one.tried for one in counts) == round(0.012 * inputs.FILES) + round(0.012 * inputs.OF_SETTINGS)
    assert [note for one in counts for note in one.notes] == []
    assert not any(one.unclear + one.traceback + one.wrong for one in counts)
    assert sum(one.right for one in counts) > 10
    assert sum(one.clear for one in counts) > 60
