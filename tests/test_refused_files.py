"""What is refused in a user's files: in one line that names the file, the place and what is wrong; and by chance."""

import gzip
import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchmarks.faults import inputs, seeds
from eadpr.settings import command as commands
from tests.repository import ROOT

pytestmark = pytest.mark.formats

FORMATS = {file_format.name: file_format for file_format in (*inputs.FORMATS, *inputs.SETTINGS)}
SETTINGS = [file_format.name for file_format in inputs.SETTINGS]
CASES = YAML(typ="safe", pure=True).load((ROOT / "tests" / "refused_files.yaml").read_text(encoding="utf-8"))
DIGITS = "9" * 5000
ZIP = FORMATS["EntityQuestions, zip"].files["e.zip"]


def with_first_row(data: bytes, change) -> bytes:
    """A file of JSON whose first row is changed; a list stays one."""
    rows = json.loads(data) if data[:1] == b"[" else list(map(json.loads, data.splitlines()))
    rows[0] = change(rows[0])
    text = json.dumps(rows) if data[:1] == b"[" else "".join(json.dumps(row) + "\n" for row in rows)
    return text.encode()


def read(folder: Path, name: str, file: str, data: bytes):
    """Reads a format's files, with `data` as the content of one."""
    file_format = FORMATS[name]
    for path, content in {**file_format.files, file: data}.items():
        (folder / "given" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "given" / path).write_bytes(content)
    return file_format.read(folder / "given")


def refused(folder: Path, name: str, file: str, data: bytes) -> str:
    """The one line that a user sees; of settings a line for each wrong key."""
    assert data != FORMATS[name].files[file]
    with pytest.raises(commands.USER_ERRORS) as error:
        read(folder, name, file, data)
    message = commands.format_error(error.value)
    for line in message.split("\n") if name in SETTINGS else [message]:
        assert line.isprintable()
        assert len(line) <= commands.LONGEST
        assert Path(file).name in line or ", made into " in line
    return message


@pytest.mark.parametrize("name", FORMATS)
def test_a_sound_file_is_read(tmp_path, name):
    file_format = FORMATS[name]
    first = next(iter(file_format.files))
    result = read(tmp_path, name, first, file_format.files[first])
    assert file_format.same(result, file_format.plainly(tmp_path / "given"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['of']}-{case['says']}")
def test_what_is_wrong_is_said_with_file_place_and_value(tmp_path, case):
    data = FORMATS[case["of"]].files[case["file"]]
    if "row" in case:
        data = with_first_row(data, lambda row: row | case["row"])
    elif "replace" in case:
        data = data.replace(*(text.encode() for text in case["replace"]))
    else:
        data = case["put"].encode()
    assert case["says"] in refused(tmp_path, case["of"], case["file"], data)


@pytest.mark.parametrize(("name", "file", "data", "message"), [
    ("own gzip", "p.jsonl.gz", gzip.compress(f'{{"id": {DIGITS}}}'.encode(), mtime=0), "p.jsonl.gz, line 1: malformed"),
    ("own JSON list", "q.json", (b'"who?"', DIGITS), "q.json, item 1: malformed JSON"),
    ("own CSV", "q.csv", (b"[1.0]", "[" * 99_999), "q.csv, line 2: grades is '[[[["),
    ("own Parquet", "p.parquet", b"PAR1" + b"\x0f" * 40 + b"\x14\0\0\0PAR1", "p.parquet, after row 0: damaged, or not"),
    ("HotpotQA, archive", "pages.tar.bz2", seeds.tarred(b'[{"title": "A"}]'), "wiki_01.bz2, item 1: field 'text' is m"),
    ("BEIR", "qrels/test.tsv", (b"t2\ta\t0", "t1\ta\t2"), "test.tsv, line 5: passage 'a' has another grade above"),
    ("own JSONL", "q.jsonl", (b'"c"], "grades": [1.0, 1.0]', '"b"], "grades": [1.0, 2.0]'), "grades has two for pos"),
    ("DPR training", "psgs.tsv", b"id\ttext\ttitle\n1\tcaf\xe9\tA\n", "psgs.tsv, line 2: byte 0xe9 is not UTF-8"),
    ("EntityQuestions, zip", "e.zip", (b"PK\x03\x04", "PK\x03\x05"), "e.zip/a/P19.dev.json is truncated, damaged"),
    ("EntityQuestions, zip", "e.zip", ZIP[:345] + b"\n" + ZIP[345:], "damaged or encrypted ([Errno"),
    ("EntityQuestions, zip", "e.zip", (b"P20", "P19"), "e.zip is truncated, damaged or encrypted (a name stands tw"),
    ("EntityQuestions, zip", "e.zip", ZIP[:-9], "e.zip is truncated, damaged"),
    ("SQuAD", "dev.json", b'{"data": "\xe9' + b"x" * 5000, "dev.json: expected a JSON object with a list `data` ('"),
    ("SQuAD", "dev.json", (b'"answers"', json.dumps("x" * 5000)), "answers' is missing (it has id, question, xxx"),
])  # fmt: skip
def test_bytes_that_are_no_text_or_far_too_long_are_refused(tmp_path, name, file, data, message):
    if isinstance(data, tuple):
        data = FORMATS[name].files[file].replace(data[0], data[1].encode())
    assert message in refused(tmp_path, name, file, data)


@pytest.mark.nightly
def test_a_share_of_the_changes_is_read_right_or_refused(tmp_path):
    counts = inputs.run(7, tmp_path, 0.012)
    assert sum(count.tried for count in counts) == round(0.012 * inputs.FILES) + round(0.012 * inputs.OF_SETTINGS)
    assert [note for count in counts for note in count.notes] == []
    assert not any(count.unclear + count.traceback + count.wrong for count in counts)
    assert sum(count.right for count in counts) > 10
    assert sum(count.clear for count in counts) > 60
