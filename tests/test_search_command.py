"""`eadpr search`: the ranking of stage `retrieve`, a marked sentence, and an index that fits."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import eadpr
from eadpr.library.pointing import ScoredSentence
from eadpr.library.scorers import make_scorer
from eadpr.library.search import RankedPassage, choose_arm, write_text
from eadpr.runtime.files import read_json, write_json
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode, Retrieve
from eadpr.search.encode import encode
from eadpr.search.retrieve import retrieve
from eadpr.settings import search_command, user_command
from eadpr.storage import tables
from eadpr.storage.rankings import SENTENCES, MatchedSentence
from eadpr.storage.records import Passage
from tests import small_collection as small
from tests.evaluated import REPORT
from tests.test_notes import write_logs

MARKED = "Ada was \x1b[31mborn. W9 w8 w7.\nW1 \u202e w2."


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """A collection toy with the encoded arms dpr, by vectors, and late, by tokens, and eadpr, which is not encoded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("collection: toy\n")
    folder = tmp_path / "data" / "toy"
    passages = [Passage("marked", "w1", MARKED, None), *small.passages(9)]
    records = small.write_records(folder / "records", passages, [small.question("q", "w1", ["w1"])], train=1)
    for arm, unit in (("dpr", "passage"), ("late", "token")):
        model = small.write_model(folder / "models" / arm)
        write_json(model / "encoder.json", read_json(model / "encoder.json") | {"unit": unit})
        how = {"settings": Encode.model_validate(small.ENCODE), "hardware": Machine.model_validate(small.MACHINE)}
        encode(records / "passages.parquet", model, folder / "vectors" / arm, **how)
        sections = {"retrieve": small.RETRIEVE, "sets": small.SETS, "machine": small.MACHINE}
        small.write_config(folder / "configs" / arm / "retrieve.json", **sections)
    report = REPORT.model_dump() | {"trainings": {arm: [arm] for arm in ("eadpr", "late", "dpr")}}
    small.write_config(folder / "configs" / "explore.json", report=report, sets=small.SETS)
    write_logs(folder, {"dpr": None, "eadpr": None, "late": None}, {})
    return folder


def test_stage_retrieve_keeps_the_sentences_that_search_shows(collection, tmp_path):
    """Evaluated questions alone keep sentences, and a blank passage has none."""
    passages = [Passage("blank", "w1", " ", None), Passage("marked", "w1", MARKED, None), *small.passages(8)]
    questions = [small.question(name, "where was ada born", ["w1"]) for name in ("learnt", "asked")]
    records = small.write_records(collection / "records", passages, questions, train=1)
    how = {"settings": Encode.model_validate(small.ENCODE), "hardware": Machine.model_validate(small.MACHINE)}
    for arm in ("dpr", "late"):
        folders = collection / "models" / arm, collection / "vectors" / arm
        encode(records / "passages.parquet", *folders, **how)
        settings = {"settings": Retrieve(**small.RETRIEVE | {"sentences": 10}), "sets": Sets(**small.SETS)}
        retrieve(records, *folders, tmp_path / arm, **settings, hardware=how["hardware"])
        rows = json.loads(run("where was ada born", "--arm", arm, "--json", "--k", 10))
        expected = [(row["id"], row["rank"], row["sentence"]) for row in rows if row["id"] != "blank"]
        assert len(expected) == 9
        matched = list(tables.rows(tmp_path / arm / SENTENCES, MatchedSentence))
        assert {row.question_id for row in matched} == {"asked"}
        assert [(row.passage_id, row.rank, row.start, row.end) for row in matched] == [
            (name, rank, sentence["start"], sentence["end"]) for name, rank, sentence in expected
        ]
        assert [row.score for row in matched] == pytest.approx([row[2]["score"] for row in expected], rel=1e-5)


def run(*words):
    app = user_command.app(search_command.main)
    return CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False).stdout


def test_passages_come_as_vectors_or_tokens_rank_them_with_the_sentence_that_point_finds(collection):
    texts = {row.id: {"title": row.title, "text": row.text} for row in small.passages(9)}
    texts["marked"] = {"title": "w1", "text": MARKED}
    for arm in ("dpr", "late"):
        rows = json.loads(run("where was ada born", "--arm", arm, "--json", "--k", 10))
        score = make_scorer(collection / "models" / arm).score
        titles, passages = ([row[key] for row in texts.values()] for key in ("title", "text"))
        scores = dict(zip(texts, score(["where was ada born"] * 10, titles, passages), strict=True))
        assert [row["id"] for row in rows] == sorted(scores, key=scores.get, reverse=True)
        assert [row["rank"] for row in rows] == [*range(1, 11)]
        assert [row["score"] for row in rows] == pytest.approx(sorted(scores.values(), reverse=True), abs=0.01)
        pointed = eadpr.point(collection / "models" / arm, "where was ada born", [texts[row["id"]] for row in rows])
        assert [row["sentence"] for row in rows] == [match.best and match.best._asdict() for match in pointed]


def test_a_passage_is_shown_and_not_obeyed(collection):
    """All is one line, and what steers a terminal is written out, in JSON too."""
    output = run("where was ada born", "--k", 10)
    assert r"Ada was \x1b[31mborn." in output.replace("«", "").replace("»", "")
    assert output.count("«") == output.count("»") == 10
    assert "\x1b" not in output + run("w1", "--json", "--k", 10)


def test_the_sentence_is_bold_on_a_terminal_and_a_passage_without_one_is_plain():
    rows = [
        RankedPassage(1, 0.5, "p1", "T", "One. Two. Three.", ScoredSentence(5, 9, "Two.", 0.25)),
        RankedPassage(2, 0.25, "p2", "", "None.", None),
    ]
    text = "1  0.5000  T  [p1]\nOne. \033[1mTwo.\033[0m Three.\n\n2  0.2500    [p2]\nNone.\n"
    assert write_text(rows, bold=True) == text


def test_the_arm_is_the_preferred_one_of_those_encoded_else_the_first(collection):
    assert choose_arm(collection) == "late"
    write_logs(collection, {"dpr": 1.5, "late": 2.5, "eadpr": 0.5}, {})
    assert choose_arm(collection) == "dpr"


def test_an_index_that_is_missing_or_of_other_passages_is_refused_with_what_to_run(collection):
    with pytest.raises(FileNotFoundError, match=r"models/eadpr does not exist; encoded are dpr, late; a run encodes"):
        run("w1", "--arm", "eadpr")
    with pytest.raises(ValueError, match="the question is empty"):
        run(" ")
    small.write_records(collection / "records", small.passages(5), [small.question("q", "w1", ["w1"])], train=1)
    with pytest.raises(ValueError, match=r"vectors of other passages .*run `dvc repro`"):
        run("w1")
    Path("data/toy/configs/explore.json").unlink()
    with pytest.raises(ValueError, match=r"'toy' was not measured \(measured: none\); a run with collection: toy"):
        run("w1")
    write_json(Path("data/collections/toy.yaml"), {})
    with pytest.raises(ValueError, match=r"\(measured: none\); a run with collection: toy"):
        run("w1")
