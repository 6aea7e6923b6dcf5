"""Collections in the shapes that people have: what is recognised, what it becomes, what is refused or not followed."""

import datetime
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eadpr.corpus.formats import documents
from eadpr.settings.yaml import read_yaml
from eadpr.storage.questions import grades
from tests.corpus_toy import OF_PASSAGES, prepared
from tests.repository import ROOT
from tests.test_own_files import run

pytestmark = pytest.mark.formats

BEIR = {
    "corpus.jsonl": [{"_id": f"d{i}", "title": f"T{i}", "text": f"Text {i}.", "metadata": {}} for i in range(5)],
    "queries.jsonl": [{"_id": f"q{i}", "text": f"what {i}?", "metadata": {}} for i in range(4)],
    "qrels/train.tsv": "query-id\tcorpus-id\tscore\nq0\td0\t1\nq0\td1\t2\nq1\td1\t1\nq2\td2\t0\nq0\td1\t2\n",
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq3\td3\t1\n",
    "qrels/._test.tsv": "\0",  # macOS' resource fork
}
MARCO = {
    "collection.tsv": '7\tSay "so\n8\tEight.\n',
    "queries.train.tsv": "1\twhat seven?\n9\tnot judged?\n",
    "queries.dev.small.tsv": "2\twhat eight?\n",
    "qrels.train.tsv": "1\t0\t7\t1\n",
    "qrels.dev.small.tsv": "2\t0\t8\t1\n",
}
LONDON, PARIS = "Ada was born in London in 1815.", "Ada never saw Paris."


def squad(*questions: dict[str, Any], context: str = LONDON, title: str = "Ada Lovelace") -> dict[str, Any]:
    return {"version": "2.0", "data": [{"title": title, "paragraphs": [{"context": context, "qas": list(questions)}]}]}


WHERE = {"id": "a1", "question": "Where?", "answers": [{"text": "London", "answer_start": 16}] * 2}
WHERE["answers"].append({"text": "London", "answer_start": None})
WHEN = {"id": "a2", "question": "When?", "answers": [{"text": "1815", "answer_start": 26}]}
NEVER = {"id": "a3", "question": "Never?", "is_impossible": True}

SETTINGS = ["data/collections/atlas.yaml", "params.yaml"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for file in SETTINGS:
        (tmp_path / "project" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / "project" / file)
    return tmp_path / "project"


def written(project: Path) -> list[str]:
    return sorted(path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file())


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def added(project: Path, *arguments: object) -> str:
    done = run(project, "mine", *arguments)
    assert done.exit_code == 0, done.exception
    return done.output


def refused(project: Path, message: str, *arguments: object) -> None:
    """The command fails with a message that matches, and writes nothing."""
    done = run(project, "mine", *arguments)
    assert re.search(message, str(done.exception)), done.exception
    assert written(project) == SETTINGS


def records(project: Path, name: str) -> list[dict[str, Any]]:
    """Rows of a table of the collection as `prepare` makes it."""
    source = read_yaml(project / "data" / "collections" / "mine.yaml")["source"]
    out, _ = prepared(project, *source["files"], sources=project / "data" / "sources" / "mine")
    return pq.read_table(out / f"{name}.parquet").to_pylist()


def positives(project: Path) -> dict[str, list[str]]:
    passage_ids: dict[str, list[str]] = {}
    for context in records(project, "contexts"):
        passage_ids.setdefault(context["question_id"], []).append(context["passage_id"])
    return passage_ids


def test_beirs_folder_keeps_its_ids_and_the_most_relevant_passage_comes_first(project, tmp_path):
    output = added(project, write(tmp_path / "beir", BEIR))
    assert "a folder in BEIR's layout: corpus.jsonl, qrels/test.tsv, qrels/train.tsv" in output
    assert "qrels/train.tsv; 1 questions without a relevant passage are left out\n" in output
    assert "corpus.jsonl: text, id from _id, title; not read: metadata" in output
    assert [row["id"] for row in records(project, "passages")] == [f"d{i}" for i in range(5)]
    assert positives(project) == {"q0": ["d1", "d0"], "q1": ["d1"], "q3": ["d3"]}
    assert grades(project / "records") == {"q0": {"d1": 2, "d0": 1}}, "those of 1 alone need none"
    block = read_yaml(project / "data" / "collections" / "mine.yaml")
    assert block["sets"] == {"train": ["own/train"], "evaluate": ["own/test"], "annotator": ["own/train"]}


def test_tsvs_without_headers_are_read_as_they_are(project, tmp_path):
    output = added(project, write(tmp_path / "marco", MARCO))
    assert "a folder of TSVs as of MS MARCO: collection.tsv, qrels.dev.small.tsv, qrels.train.tsv" in output
    assert [(row["id"], row["text"]) for row in records(project, "passages")] == [("7", 'Say "so'), ("8", "Eight.")]
    assert positives(project) == {"1": ["7"], "2": ["8"]}
    block = read_yaml(project / "data" / "collections" / "mine.yaml")
    assert block["sets"]["evaluate"] == ["own/dev.small"]


def test_questions_that_are_trained_on_and_evaluated_are_counted(project, tmp_path):
    queries = [row | {"text": "What 1? "} if row["_id"] == "q3" else row for row in BEIR["queries.jsonl"]]
    output = added(project, write(tmp_path / "beir", BEIR | {"queries.jsonl": queries}))
    assert "own/test: 1 of its questions are trained on too, word for word; results will flatter\n" in output


@pytest.mark.parametrize(("answer", "cause"), [
    ("Text; 9", "several answers are a list"), ("A&amp;B", "HTML's entities are no text"), ("no", "in other words"),
])  # fmt: skip
def test_answers_that_no_positive_holds_are_said(project, tmp_path, answer, cause):
    row = {"answers": ["Text"], "answer_kind": "string"}
    questions = [row | {"question": f"what {i}?", "positives": f"d{i % 5}"} for i in range(30)]
    questions[0]["answers"] = answer
    folder = write(tmp_path, BEIR | {"q.jsonl": questions})
    output = added(project, "--passages", folder / "corpus.jsonl", "--questions", folder / "q.jsonl")
    assert "1 of 30 questions have positives that hold no answer (" in output
    assert cause in output
    assert f"'what 0?': ['{answer}']" in output


def test_ids_that_are_not_read_rows_of_one_question_and_what_encoders_do_not_read_are_told(project, tmp_path):
    passages = [{"chunk": f"c{i}", "text": "word " * 50 * i} for i in range(1, 6)]
    questions = [{"question": f"what {i // 2}?", "positives": f"c{i % 5 + 1}", "split": "train"} for i in range(30)]
    questions += [{"question": f"{s}?", "positives": "c1", "split": s} for s in ("test", "validation")]
    numbered = [row | {"positives": row["positives"][1:]} for row in questions]
    path = write(tmp_path, {"p.jsonl": passages, "q.jsonl": questions, "n.jsonl": numbered}) / "p.jsonl"
    refused(project, r"p\.jsonl: no column id, .* not read are chunk; say", path, tmp_path / "n.jsonl")
    output = added(project, path, tmp_path / "q.jsonl", "--columns", "id=chunk")
    assert "own/train: 15 questions stand there again; give all positives of a question in one row\n" in output
    assert "1 passages have over 200 words; encoders read the first of them: --split-words 100 cuts them\n" in output
    assert read_yaml(project / "data/collections/mine.yaml")["sets"]["validation"] == ["own/validation"]


def test_what_would_not_be_read_is_refused(project, tmp_path):
    folder = write(tmp_path / "beir", BEIR)
    files = ["--passages", folder / "corpus.jsonl", "--questions", folder / "queries.jsonl", "--share", 0.3]
    for words in ([folder], files):
        refused(project, "--test-questions is for --passages and", *words, "--test-questions", folder / "queries.jsonl")
    added(project, folder)
    for unread in (["--share", 0.3], ["--split-words", 50], ["--columns", "text=body"]):
        done = run(project, "mine", folder, *unread)
        assert "mine is there already; --share, --split-words, columns are for" in str(done.exception)


@pytest.mark.parametrize(("files", "message"), [
    (BEIR | {"qrels.Test.tsv": "q3\t0\td3\t1\n"}, r"qrels\.Test\.tsv judges the questions of test too; keep one"),
    ({"a.md": "x"}, "is a folder without corpus.jsonl .*for a folder of documents give a file of questions too"),
    ({k: v for k, v in BEIR.items() if k != "queries.jsonl"}, "has qrels of .*, but neither queries.jsonl nor"),
])  # fmt: skip
def test_a_folder_that_is_none_is_called_so(project, tmp_path, files, message):
    refused(project, message, write(tmp_path / "folder", files))


def test_squads_paragraphs_are_passages_and_its_offsets_gold(project, tmp_path):
    dev = squad(WHEN) | {"data": squad(WHEN)["data"] + squad(context=PARIS)["data"]}
    files = write(tmp_path, {"train.json": squad(WHERE, NEVER), "dev.json": dev})
    output = added(project, files / "train.json", files / "dev.json")
    assert "SQuAD's JSON; 1 questions without an answer are left out\ntrain.passages.jsonl: text, id, title\n" in output
    assert [row["id"] for row in records(project, "passages")] == ["Ada_Lovelace/1", "Ada_Lovelace/2"]
    contexts = {row["question_id"]: row for row in records(project, "contexts")}
    gold = {key: [LONDON[span["start"] : span["end"]] for span in row["gold"]] for key, row in contexts.items()}
    assert gold == {"a1": ["London"], "a2": ["1815"]}


def test_a_table_of_questions_with_their_passages_keeps_splits_and_names_what_is_not_read(project, tmp_path):
    """0 is an answer; what no JSON holds, such as a date, is in no one's way."""
    row = {"context": "Text 1.", "day": datetime.date(2026, 1, 1), "answer_start": 3, "split": "train"}
    rows = [row | {"query": f"{i}?", "answers": i, "split": "test" if i > 20 else "train"} for i in range(30)]
    table = pa.Table.from_pylist([*rows, row | {"query": "?", "answers": None}])
    pq.write_table(table, tmp_path / "t.parquet")
    output = added(project, tmp_path / "t.parquet")
    assert (
        "with their passages; 1 questions without an answer are left out\nt.passages.jsonl: text, id, title\n" in output
    )
    assert "t.questions.jsonl: question, answers, positives, split; not read: day\n" in output
    assert {line.partition(",")[0] for line in output.splitlines()} >= {
        "own/train: 21 questions",
        "own/test: 9 questions",
    }
    assert len(records(project, "passages")) == 1


def test_rows_in_json_are_told_from_squad(project, tmp_path):
    passages = [{"id": f"p{i}", "text": f"Text {i}."} for i in range(30)]
    questions = [{"question": f"what {i}?", "answers": ["Text"]} for i in range(30)]
    write(tmp_path, {"p.json": json.dumps(passages, indent=1), "q.JSON": questions})
    assert "p.json: text, id\n" in added(project, tmp_path / "p.json", tmp_path / "q.JSON")


def test_documents_are_cut_at_their_headings(project, tmp_path):
    documents = {
        "a b.md": "Before.\n\n# First #\nOne.\n## Second\n\n### Third\nTwo.\n## Fourth\nThree.\n# Empty\n",
        ".venv/entry.txt": "x",
        "sub/.git/a.md": "x",
        "sub/__MACOSX/._c.txt": "x",
        "node_modules/m/README.md": "x",
        "sub/deep.md": "# Top" + " " * 100_000 + "x ##\nAt once.\n#  \n",
        "c.txt": "# no heading\nC.",
        "e.md": "---\ntitle: None\ntags:\n- a\n\n---\n# Empty\n",
        "code.md": "---\ntitle: x\n---\n# Get it\n```sh\n# fetch\nget\n```\nthen\n~~~~\n# not closed\n",
        "d.pdf": "left alone",
        "e.PDF": "too",
        "sub/Makefile": "all:",
    }
    questions = [{"question": f"who {i}?", "answer": "One"} for i in range(30)]
    folder, path = write(tmp_path / "docs", documents), write(tmp_path, {"q.jsonl": questions}) / "q.jsonl"
    (folder / "more").symlink_to(tmp_path)
    output = added(project, "--passages", folder, "--questions", path)
    assert "docs.passages.jsonl: text, id, title\nq.jsonl: question, answers from answer\n" in output
    assert f"questions of {path}; not read: 4 hidden, 2 .pdf, 1 " in output
    assert all(f"1 {kind}" in output for kind in ("without an ending", "links to folders or to nothing", "empty"))
    assert [(row["id"], row["title"], row["text"]) for row in records(project, "passages")] == [
        ("a_b.md:1", "a b", "Before."),
        ("a_b.md:2", "First", "One."),
        ("a_b.md:3", "First: Second: Third", "Two."),
        ("a_b.md:4", "First: Fourth", "Three."),
        ("c.txt:1", "c", "# no heading\nC."),
        ("code.md:1", "Get it", "```sh\n# fetch\nget\n```\nthen\n~~~~\n# not closed"),
        ("sub/deep.md:1", "Top" + " " * 100_000 + "x", "At once.\n#"),
    ]


def own_files(folder: Path, passage: dict[str, str]) -> tuple[object, ...]:
    write(folder, {"p.jsonl": [passage], "q.jsonl": [{"question": f"{i}?", "answers": ["x"]} for i in range(30)]})
    return "--passages", folder / "p.jsonl", "--questions", folder / "q.jsonl"


def test_columns_are_taken_as_they_are_said_and_kept_for_the_pipeline(project, tmp_path):
    files = own_files(tmp_path, {"text": "x", "_id": "a", "docid": "b"})
    refused(project, "_id and docid may each be the id; say which, --columns id=_id or id=docid", *files)
    files = own_files(tmp_path, {"story": "x", "my_id": "a", "id": "no"})
    for message, *columns in (
        (r"there is no column for text \(there are story.*--columns text=COLUMN", "title=my_id"),
        (r"there is no column 'tale' for text \(there are story", "text=tale"),
        ("have no field 'body'", "body=story"),
        ("'story' is not FIELD=COLUMN", "story"),
        ("text is 'story' and 'my_id'; give one column for each field", "text=story", "text=my_id"),
    ):
        refused(project, message, *files, *(word for column in columns for word in ("--columns", column)))
    output = added(project, *files, "--columns", "text=story", "--columns", "id=my_id")
    assert "p.jsonl: text from story, id from my_id; not read: id" in output
    assert [(row["id"], row["text"]) for row in records(project, "passages")] == [("a", "x")]


def test_a_dry_run_shows_records_and_writes_nothing(project, tmp_path):
    output = added(project, write(tmp_path / "beir", BEIR), "--dry-run")
    assert "passage d0, title 'T0': 'Text 0.'" in output
    assert "question q0: 'what 0?', answers [], positives ['d1', 'd0']" in output
    assert written(project) == SETTINGS


def test_gold_offsets_name_the_positives_of_questions_that_name_none(tmp_path):
    gold = {"question": "Where?", "passage_id": "2", "answer": "London", "answer_start": 16}
    passages = f'id\ttext\ttitle\n1\t"{PARIS}"\tP\n2\t"{LONDON}"\tL\n'
    write(tmp_path, {"p.tsv": passages, "q.csv": "Where?\t['London']\nWhen?\t['1815']\n", "g.jsonl": [gold]})
    split = {"set": "s", "split": "test"}
    files = [OF_PASSAGES, {"kind": "questions", "path": "q.csv", **split}, {"kind": "gold", "path": "g.jsonl", **split}]
    records, _ = prepared(tmp_path, *files, format="dpr")
    (context,) = pq.read_table(records / "contexts.parquet").to_pylist()
    assert (context["question_id"], context["passage_id"], context["role"]) == ("s/test:1", "2", "positive")
    assert context["gold"] == [{"start": 16, "end": 22}]


def test_a_link_among_documents_leads_to_no_file_elsewhere(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("A.")
    (folder / "b.md").symlink_to(folder / "a.md")
    assert [row["text"] for row in documents.read_sections(folder, Counter())] == ["A.", "A."]
    (tmp_path / "key.txt").write_text("secret")
    (folder / "b.txt").write_bytes(b"a\0")
    with pytest.raises(ValueError, match=r"docs/b\.txt: holds U\+0000 at character 1"):
        list(documents.read_sections(folder, Counter()))
    (folder / "c.txt").symlink_to(tmp_path / "key.txt")
    (folder / "b.txt").unlink()
    with pytest.raises(ValueError, match=r"c\.txt is a link to a file outside of .*docs; put the file itself there"):
        list(documents.read_sections(folder, Counter()))
