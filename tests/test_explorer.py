"""The data of the explorer's page, and its errors; a browser shows the page in another module."""

import base64
import json
import re
import shutil
import zlib

import pytest

from eadpr.evaluation.outcomes import Outcomes
from eadpr.explorer import explore
from eadpr.explorer.gather import ExploreInputs
from eadpr.explorer.page import make_page, pack
from eadpr.report.differences import compare
from eadpr.storage import tables
from eadpr.storage.records import PairScore, Ranked
from tests import explorer_toy
from tests.evaluated import REPORT, SETS, evaluated

pytestmark = pytest.mark.explorer


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return explorer_toy.write(tmp_path_factory.mktemp("explorer"))


@pytest.fixture
def copied(inputs, tmp_path):
    """The same files, to be changed."""
    folder = shutil.copytree(inputs.records.parent, tmp_path / "toy")
    return ExploreInputs(*(folder / path.relative_to(inputs.records.parent) for path in inputs))


def unpacked(html: bytes, name: str):
    block = re.search(rb'id="%s">([^<]*)<' % name.encode(), html)[1]
    return json.loads(zlib.decompress(base64.b64decode(block)))


def explored(inputs, tmp_path, settings=REPORT, sets=SETS) -> bytes:
    explore.run(inputs, tmp_path / "page.html", "toy", settings, sets, {})
    return (tmp_path / "page.html").read_bytes()


def test_columns_hold_the_measures_of_every_question(inputs, tmp_path):
    columns = unpacked(explored(inputs, tmp_path), "columns")
    assert (columns["arms"], columns["ids"]) == (["bm25", "dpr", "eadpr"], ["q1", "q2", "q3", "q4", "q5"])
    assert columns["sets"] == {"main/dev": [0, 1, 2, 3], "more/dev": [3, 4]}
    # mrr3 says nothing of dpr's first hit of q5, at rank 5
    assert columns["first"] == [[2, 2, 1, 1, 0], [2, 0, 2, 3, 0], [1, 1, 0, 1, 1]]
    assert columns["values"]["aa"][1] == [[1, 0, 0, 1, 0], [1, 1, 0, 1, 1]]  # the tie of q2 counts against dpr
    overview = columns["overview"]["main/dev"]
    assert overview["means"]["eadpr"]["top1"][0] == overview["differences"][0]["metrics"]["top1"][0] == 0.75
    for line in ("- main/dev (dpr): 4 questions, 3 with a ranking", "2 examples without a distractor", "3 AA pairs"):
        assert line in columns["notes"]["counts"]
    assert columns["notes"]["sets"] == {"main/dev": [], "more/dev": []}
    # The same interval as the report's, though several are drawn together.
    sides = [Outcomes([inputs.outcomes / f"{arm}.parquet"]).of_trainings("main/dev", "aa") for arm in ("eadpr", "dpr")]
    interval = compare([(*sides, False)], REPORT)[0].interval
    expected = [*(round(value, 6) for value in interval[:3]), interval.n]
    assert overview["differences"][0]["metrics"]["aa"] == expected


@pytest.mark.parametrize(("trainings", "mean"), [
    (["eadpr"], [1.0, 0.206549, 1.0, 1]), (["eadpr", "again"], [1.0, 0.206549, 1.0, 1]), (["eadpr", "dpr"], None),
])  # fmt: skip
def test_a_metric_without_shared_questions_is_left_out(copied, tmp_path, trainings, mean):
    for arm, question in (("dpr", "q1"), ("eadpr", "q2")):
        pairs = [row for row in tables.rows(copied.pairs / f"{arm}.parquet", PairScore) if row.question_id == question]
        tables.write(copied.pairs / f"{arm}.parquet", PairScore, pairs)
        evaluated(copied.records.parent, arm)
    shutil.copy(copied.outcomes / "eadpr.parquet", copied.outcomes / "again.parquet")
    settings = REPORT.model_copy(update={"trainings": {"dpr": ["dpr"], "eadpr": trainings}})
    overview = unpacked(explored(copied, tmp_path, settings), "columns")["overview"]["main/dev"]
    assert overview["means"]["eadpr"].get("aa") == mean
    assert "top1" in overview["differences"][0]["metrics"]
    assert "aa" not in overview["differences"][0]["metrics"]


def test_a_row_of_several_trainings_has_their_mean_and_its_first_is_shown(inputs, tmp_path):
    several = REPORT.model_copy(update={"trainings": {"dpr": ["dpr"], "eadpr": ["eadpr", "bm25"]}})
    columns = unpacked(explored(inputs, tmp_path, several), "columns")
    assert columns["overview"]["main/dev"]["means"]["eadpr"]["top1"][0] == (0.75 + 0.5) / 2
    assert columns["overview"]["main/dev"]["trainings"]["eadpr"] == 2
    assert columns["arms"] == ["bm25", "dpr", "eadpr"]


def test_a_fused_ranking_and_a_collection_without_pairs_are_shown(copied, tmp_path):
    shutil.copytree(copied.rankings / "eadpr", copied.rankings / "hybrid")
    for arm in ("dpr", "eadpr"):
        (copied.pairs / f"{arm}.parquet").unlink()
        evaluated(copied.records.parent, arm, pairs=None)
    shutil.copy(copied.outcomes / "eadpr.parquet", copied.outcomes / "hybrid.parquet")
    html = explored(copied, tmp_path, REPORT.model_copy(update={"fused": ["hybrid"]}))
    columns = unpacked(html, "columns")
    assert columns["arms"] == ["bm25", "dpr", "eadpr", "hybrid"]
    assert columns["descriptions"] == ["", "", "", "one ranking made of two"]
    assert columns["forms"]["masked_cut"] == "without the answer; the encoder does not read that far"
    assert "holds an answer" in columns["metrics"]["top1"][1]
    assert [*columns["metrics"]] == ["top1", "top2", "mrr3"]
    assert all(positive["scores"] == {} for detail in unpacked(html, "details0") for positive in detail["positives"])


def test_the_same_inputs_give_the_same_bytes_and_no_script_ends_early(inputs, tmp_path):
    html = explored(inputs, tmp_path)
    assert html == explored(inputs, tmp_path)
    assert html.count(b"</script>") == html.count(b"<script")
    assert b"http" not in html.replace(b"http://www.w3.org/2000/svg", b"").replace(b"http-equiv", b"")
    assert (
        "<title>eadpr · a &lt;b&gt; &amp; {{data}} · 2026</title>"
        in make_page("a <b> & {{data}}", "2026", {}, [], []).decode()
    )
    with pytest.raises(ValueError, match="Out of range float"):
        pack(float("nan"))


def test_missing_inputs_and_those_of_another_collection_are_named(inputs, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"notes\.json .*dvc repro"):
        explored(inputs._replace(report=tmp_path), tmp_path)
    tables.write(tmp_path / "bm25" / "evaluate.parquet", Ranked, [Ranked("other", "p1", 1, 2.0)])
    with pytest.raises(ValueError, match=r"bm25/evaluate\.parquet has no passages for the 5 questions"):
        explored(inputs._replace(rankings=tmp_path), tmp_path)
