"""What a run takes: arithmetic by hand, and the command at toy size."""

import shutil

import pytest

from eadpr.corpus import download
from eadpr.corpus.download import Pin
from eadpr.corpus.sources import Source
from eadpr.runtime import machine
from eadpr.runtime.files import write_json
from eadpr.settings.resolve import configs, load
from eadpr.storage import tables
from eadpr.storage.records import Passage, SetMember
from eadpr.studies import plan, provenance, rates
from eadpr.studies.plan import Cost
from eadpr.studies.rates import Rates
from eadpr.studies.run import expanded, read_study
from eadpr.training.config import Loss, Train
from stages import plan as command
from tests.evaluated import cells
from tests.loopback import serving
from tests.repository import ROOT

# 10 passages of 100 tokens encoded and 1,000 tokens trained on per second; an encoder of 5 weights and 4 dimensions.
RATES = Rates(10.0, 1000.0, 100.0, 20.0, 4, 5, "a toy")
PARAMS = load(ROOT / "params.yaml")
DPR = {"form": "paper", "lambda": 0.0, "tau1": 0.0, "tau2": 0.0, "placebo": 0.0}


def train(**changes) -> Train:
    shown = {"batch_size": 8, "accumulation": 1, "hard_negatives": 1, "validate_every": 4, "validation_questions": 50}
    return Train(**PARAMS["train"] | shown | {"validation_hard_negatives": 3} | changes)


def source(*files) -> Source:
    return Source(format="dpr", files=list(files))


WIKI = {"kind": "passages", "url": "http://a.org/p.tsv", "rows": 100, "size": 7}
NQ = {"kind": "training", "url": "http://a.org/t.json", "set": "nq", "split": "train", "rows": 64}


def test_counts_are_those_given_else_prepared_else_of_the_collections_files(tmp_path):
    records = tmp_path / "records"
    assert plan.counts(source(WIKI, NQ), None, records, {}) == {"passages": 100, "nq/train": 64}
    assert plan.counts(source(NQ), 5880, records, {"nq/train": 3}) == {"passages": 5880, "nq/train": 3}
    with pytest.raises(ValueError, match="--count passages=N"):
        plan.counts(source(NQ, {**WIKI, "rows": None}), None, records, {})
    tables.write(records / "passages.parquet", Passage, [Passage("p1", "t", "x", None), Passage("p2", "t", "y", None)])
    tables.write(records / "question_sets.parquet", SetMember, [SetMember("nq", "train", "q1")])
    assert plan.counts(source(WIKI, NQ), None, records, {"nq/train": 9}) == {"passages": 2, "nq/train": 9}
    generated = Source(format="atlas", files=[])
    assert plan.counts(generated, 2, records, {}) == {"passages": 2, "nq/train": 1}
    assert plan.counts(generated, 210, records, {}) == {"passages": 210}  # of another size than what was prepared


def test_steps_hang_on_the_questions_where_no_number_is_set():
    assert plan.steps(train(steps=7), ["nq/train"], {}) == 7
    found = {"nq/train": 64, "trivia/train": 16}
    assert plan.steps(train(steps=None, epochs=3), list(found), found) == 30  # (64 + 16) / 8 batches, 3 times
    upsampled = train(steps=None, epochs=3, upsample={"trivia/train": 4, "others": 0})
    assert plan.steps(upsampled, list(found), {"trivia/train": 16}) == 24
    # As atlas's 2,583 questions: 130 are held out, which leaves 2,453, or at most 100.
    for most, batches in ((None, 306), (100, 12), (9999, 306)):
        assert plan.steps(train(steps=None, epochs=3), ["a/b"], {"a/b": 2583}, share=0.05, most=most) == 3 * batches
    # Of 64 and 16 questions 40 are asked, 8 of them 4 times.
    assert plan.steps(train(steps=None, epochs=1, upsample={"trivia/train": 4}), list(found), found, most=40) == 8
    # 5 questions, fewer than a batch of 8, 4 times each: as many batches as copies.
    few = train(steps=None, epochs=3, upsample={"trivia/train": 4, "others": 0})
    assert plan.steps(few, list(found), found | {"trivia/train": 5}) == 12
    with pytest.raises(ValueError, match=r"how many questions nq/train has .*--count nq/train=N"):
        plan.steps(train(steps=None), ["nq/train"], {})


def test_a_training_takes_its_steps_and_its_validations():
    dpr, paper = Loss(**PARAMS["loss"] | DPR), Loss(**PARAMS["loss"])
    # 6 steps of 8 questions of 20 tokens, with 2 passages of 50 tokens, or 3 where there are distractors
    assert plan.training_seconds(dpr, train(), 6, 0, RATES, 50) == pytest.approx(48 * (20 + 2 * 50) / 1000)
    learning = 48 * (20 + 3 * 50) / 1000
    # Validated after 4 and 6 steps: 12 held out, each with 2 passages, and 4 in the pool; 20 passages of 50 a second.
    assert plan.training_seconds(paper, train(), 6, 12, RATES, 50) == pytest.approx(learning + 2 * 12 * 6 / 20)
    assert plan.training_seconds(paper, train(validate_every=0), 6, 99, RATES, 50) == pytest.approx(
        learning + 50 * 6 / 20
    )


def of_table2() -> dict:
    return expanded(read_study(ROOT / "studies.yaml", "001-table2"), PARAMS | {"collection": "wiki18"})


def test_a_studys_stages_run_for_every_arm_and_seed(monkeypatch):
    monkeypatch.chdir(ROOT)
    times = provenance.times(of_table2())
    assert (times["fetch"], times["train"], times["encode"], times["read"]) == (1, 18, 18, 0)
    assert list(times)[-2:] == ["report", "explore"]


def test_costs_of_table_2_are_arithmetic(monkeypatch):
    monkeypatch.chdir(ROOT)
    values = of_table2()
    found = configs(values)
    known = plan.counts(Source(**found["fetch.json"]["source"]), None, ROOT / "none", {})
    assert known == {"passages": 21_015_324, "nq/train": 58_880, "nq/dev": 6_515, "nq/test": 3_610}
    of = plan.costs(
        found, values["active"], provenance.times(values), known, {"a": 5, "b": 7}, RATES, of_passage=100, text=600
    )
    assert of["fetch"] == Cost(12, 12)
    assert of["prepare"].keep == 21_015_324 * 600
    assert of["bm25"].keep == (58_880 + 6_515 + 3_610) * 100 * 8
    assert of["encode"] == Cost(keep=18 * 21_015_324 * 4 * 2, seconds=pytest.approx(18 * 21_015_324 / 10))
    assert of["train"].keep == 18 * 2 * 5 * 4  # two encoders
    # 40 epochs of 58,880 questions in whole batches. Six arms, each with three seeds, take 1, 2, 2, 3, 2 and 3 passages
    # a question, and validate 40 times with 6,515: two arms have 32 passages a question in the pool, the others 33.
    learning = 40 * 58_880 * (18 * 20 + 3 * 13 * 100) / 1000
    assert of["train"].seconds == pytest.approx(learning + 40 * 6_515 * 3 * (2 * 32 + 4 * 33) / 10)


def test_where_the_questions_are_not_known_validations_ask_as_many_as_they_may(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = configs(PARAMS)
    of = plan.costs(found, ["dpr"], provenance.times(PARAMS), {"passages": 1}, {}, RATES, of_passage=100, text=1)
    # 600 steps of 32 questions with 2 passages; 2 validations of 200 questions with 8 passages in the pool.
    assert of["train"].seconds == pytest.approx(600 * 32 * 220 / 1000 + 2 * 200 * 8 / 10)


def test_a_table_says_what_is_not_known():
    of = {"fetch": Cost(float("nan"), float("nan")), "encode": Cost(keep=32e9, seconds=7200.0), "x": Cost(12.0, 999.0)}
    assert cells(plan.table({"configs": 1, "fetch": 1, "encode": 18, "read": 0, "x": 1}, of))[1:] == [
        ["configs", "1", "–", "–", "–"],
        ["fetch", "1", "?", "?", "–"],
        ["encode", "18", "–", "32 GB", "2.0 h"],
        ["x", "1", "12 bytes", "999 bytes", "–"],
        ["**in all**", "21", "12 bytes + ?", "32 GB + ?", "2.0 h"],
    ]


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0 s"), (59.4, "59 s"), (90, "1.5 min"), (36_000, "10 h")])
def test_a_duration(seconds, shown):
    assert plan.duration(seconds) == shown


def test_sizes_of_downloads_are_the_collections_the_pins_or_the_servers(tmp_path):
    def answer(to) -> None:
        to.send_response(200)
        to.send_header("Content-Length", "345")
        to.end_headers()

    with serving(do_HEAD=answer) as http:
        asked = {**NQ, "url": f"http://127.0.0.1:{http.server_port}/q.json"}
        files = source(WIKI, NQ, asked, {"kind": "training", "path": "own.json", "set": "own", "split": "train"})
        write_json(tmp_path / download.PINS, {NQ["url"]: Pin("0" * 64, 11)._asdict()})
        assert download.sizes(files, tmp_path, ask=False) == {"p.tsv": 7, "t.json": 11, "q.json": None}
        assert download.sizes(files, tmp_path, ask=True) == {"p.tsv": 7, "t.json": 11, "q.json": 345}


def test_work_is_doubled_until_it_takes_long_enough_and_its_start_is_left_out(monkeypatch):
    monkeypatch.setattr(rates, "seconds", lambda work: (work(), 0.05 + work() / 100))  # 100 units a second
    monkeypatch.setattr(rates, "LEAST", 0.3)
    sizes = []

    def ready(size):
        sizes.append(size)
        return lambda: size

    assert rates.rate(ready, most=1000) == pytest.approx(100)
    assert sizes == [1, 1, 2, 4, 8, 16, 32]  # 1 once more to warm up
    sizes.clear()
    assert rates.rate(ready, most=20) == pytest.approx(100)
    assert sizes == [1, 1, 2, 4, 8, 16]
    assert rates.rate(ready, most=10) == pytest.approx(8 / 0.13)  # not clearly longer than its half: no difference


GIVEN = {"collection": None, "set_": [], "seeds": [], "count": [], "ask": False, "tokens": 50.0, "text_bytes": None}


@pytest.fixture
def pipeline(tmp_path, monkeypatch) -> dict:
    """Options of the command, in a folder with the pipeline's files."""
    for name in ("params.yaml", "studies.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "data" / "collections", tmp_path / "data" / "collections")
    monkeypatch.chdir(tmp_path)
    return GIVEN | {"studies": tmp_path / "studies.yaml", "params": tmp_path / "params.yaml"}


def test_the_command_takes_bytes_of_what_was_prepared_and_counts_of_what_is_asked(tmp_path, pipeline, monkeypatch):
    monkeypatch.setattr(command, "_measured", lambda *_: RATES)
    records = tmp_path / "data" / "atlas" / "records"
    tables.write(records / "passages.parquet", Passage, [Passage("p1", "t", "x", None), Passage("p2", "t", "y", None)])
    of_two = sum(path.stat().st_size for path in records.glob("*"))
    for changes in ({"count": ["passages=2100"]}, {"set_": ["atlas.passages=2000"]}):  # whole blocks of 210
        text = command.main(name=None, **pipeline | changes)
        assert {row[0]: row[3] for row in cells(text.split("\n\n")[0])}["prepare"] == plan.size(of_two * 1050)
        assert "2,100 passages of 50 tokens" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"count": ["nq"]}, r"--count nq: expected NAME=N"),
        ({"count": ["passages=0"]}, r"--count passages=0: .*N at least 1"),
        ({"count": ["atlas/trian=5"]}, r"a name of passages, atlas/train, atlas/test, atlas/annotator$"),
        ({"seeds": [1]}, r"--seed is for a study"),
    ],
)
def test_the_command_refuses_what_it_would_not_heed(pipeline, changes, said):
    with pytest.raises(ValueError, match=said):
        command.main(name=None, **pipeline | changes)


def test_the_command_measures_and_prints_one_table(pipeline, monkeypatch):
    monkeypatch.setattr(machine, "settle", lambda _: None)  # other tests of this process have their own
    monkeypatch.setattr(rates, "LEAST", 0.0)
    changes = ["base.layers=1", "base.hidden=32", "base.heads=2", "base.intermediate=32", "base.vocabulary=300"]
    text = command.main(name="evidence", **pipeline | {"set_": changes})
    rows = {row[0]: row[1:] for row in cells(text.split("\n\n")[0])}
    assert rows["train"][0] == "15"  # five arms with three seeds
    assert rows["encode"][2] == "5.6 MB"  # 15 times 5,880 passages of 32 dimensions, 2 bytes each
    assert "5,880 passages of 50 tokens" in text
    with pytest.raises(ValueError, match=r"base\.model: the sizes of nowhere cannot be read"):
        rates.shape(rates.Base(**PARAMS["base"] | {"model": "nowhere", "revision": None}))
