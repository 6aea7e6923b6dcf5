"""A table of another run is refused beside those of this one, and named with the stage that makes it anew."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eadpr.settings.command import WRITTEN, Stage
from eadpr.storage import engine, lineage, tables
from eadpr.storage.records import Distractor, Passage, Positive, Ranked
from tests.repository import stages


def ran(home, work, **paths):
    """`work` as a stage of the collection in `home`, with its paths there."""
    config = home / "configs" / "x.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("{}")
    return Stage(work, "x.json", settled=False).command()(config, **{name: home / path for name, path in paths.items()})


def prepared(home, *ids):
    ran(home, lambda *, out: write(out / "passages.parquet", Passage, [(i, "", i, None) for i in ids]), out="records")


def positives(home, question="q1", passage="p1"):
    def work(*, records, out):
        tables.read(records / "passages.parquet", Passage)
        write(out / "positives.parquet", Positive, [(question, passage, "gold", None)])

    ran(home, work, records="records", out="positives")


def distractors(home):
    """Reads both, with Arrow and with DuckDB."""

    def work(*, records, positives, out):
        tables.read(records / "passages.parquet", Passage)
        with engine.connect() as connection:
            engine.view(connection, "positives", positives / "positives.parquet", Positive)
        write(out / "distractors.parquet", Distractor, [])

    ran(home, work, records="records", positives="positives", out="distractors")


def write(path, record, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    names = record._fields
    tables.write(path, record, [record(**dict(zip(names, row, strict=True))) for row in rows])


@pytest.fixture
def home(tmp_path):
    prepared(tmp_path / "one", "p1", "p2")
    positives(tmp_path / "one")
    return tmp_path / "one"


def test_tables_of_one_run_are_read_together(home):
    distractors(home)
    noted = json.loads(pq.read_metadata(home / "distractors/distractors.parquet").metadata[lineage.NOTED])
    assert sorted(noted) == ["positives/positives.parquet", "records/passages.parquet"]


def test_a_table_of_another_run_is_refused(home, tmp_path):
    prepared(tmp_path / "two", "p1", "p3")
    positives(tmp_path / "two")
    shutil.copy(tmp_path / "two/positives/positives.parquet", home / "positives")
    said = f"{home}/positives/positives.parquet was made from another passages.parquet than {home}/records/passages"
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        distractors(home)
    assert "run `dvc repro` to rebuild it (stage positives)" in str(error.value)
    assert not (home / "distractors").exists()


def test_so_is_one_made_from_what_was_changed_since(home):
    path = home / "records" / "passages.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(ValueError, match=r"positives\.parquet was made from another passages\.parquet"):
        distractors(home)


def test_one_of_another_runs_descent_is_refused_too(home):
    """Positives with the same rows, of other passages: what was made from them is of another run as well."""
    distractors(home)
    prepared(home, "p1", "p3")
    positives(home)
    with pytest.raises(ValueError, match=r"distractors\.parquet was made from another positives\.parquet"):
        ran(
            home,
            lambda *, positives, distractors: tables.read(distractors / "distractors.parquet", Distractor),
            positives="positives", distractors="distractors",
        )  # fmt: skip


def test_rankings_are_not_noted(home):
    """So that positives keep their bytes where BM25's settings change and they do not."""

    def work(*, records, ranking, out):
        write(out / "positives.parquet", Positive, [("q1", "p1", "gold", None)])

    before = (home / "positives" / "positives.parquet").read_bytes()
    for score in (1.0, 2.0):
        write(home / "rankings" / "bm25" / "train.parquet", Ranked, [("q", "p", 1, score)])
        ran(home, work, records="records", ranking="rankings/bm25", out="positives")
        assert (home / "positives" / "positives.parquet").read_bytes() == before


def test_tables_outside_of_a_stage_say_nothing(home, tmp_path):
    write(tmp_path / "passages.parquet", Passage, [("p", "", "p", None)])
    assert lineage.NOTED not in pq.read_metadata(tmp_path / "passages.parquet").metadata


def test_a_stage_is_given_all_that_dvc_does_not_take_for_its_outputs():
    for stage in stages().values():
        outs = {
            next(iter(out)) if isinstance(out, dict) else out
            for kind in ("outs", "metrics")
            for out in stage.get(kind, [])
        }
        options = re.findall(r"--([\w-]+) (\S+)", stage["cmd"])
        assert {name for name, path in options if path in outs} <= set(WRITTEN)
        assert not {name for name, path in options if path not in outs} & set(WRITTEN)


def test_a_path_written_another_way_is_the_same(home, monkeypatch):
    monkeypatch.chdir(home.parent)
    path = home / "records" / "passages.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)

    def work(*, records, positives):
        tables.read(positives / "positives.parquet", Positive)

    given = {"records": home / "records", "positives": Path("one/positives")}
    with pytest.raises(ValueError, match=r"one/positives/positives\.parquet was made from another"):
        Stage(work, "x.json").command()(Path("one/configs/x.json"), **given)
