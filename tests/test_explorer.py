"""What the explorer gathers, how it packs it, and what it says of bad input; a browser shows it in another module."""

import base64
import json
import re
import shutil
import zlib

import pytest

from eadpr.explorer import explore, gather, packing, rankings, words
from eadpr.explorer.config import Explore
from eadpr.explorer.page import page
from eadpr.explorer.rankings import ExploreInputs
from eadpr.runtime import files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import PairScore, Ranked
from stages import explore as command
from tests import explorer_toy
from tests.evaluated import REPORT, SETS, evaluated, write_config
from tests.explorer_toy import COUNTS, WITH_ALL


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return explorer_toy.write(tmp_path_factory.mktemp("explorer"))


def unpacked(written: bytes, name: str):
    block = re.search(rb'id="%s">([^<]*)<' % name.encode(), written)[1]
    return json.loads(zlib.decompress(base64.b64decode(block)))


def shown(inputs, tmp_path, **chosen):
    explore.run(inputs, tmp_path / "page.html", "toy", REPORT, SETS, **chosen)
    return (tmp_path / "page.html").read_bytes()


def test_columns_hold_what_was_measured_of_every_question(inputs, tmp_path):
    found = unpacked(shown(inputs, tmp_path), "columns")
    assert (found["arms"], found["ids"]) == (["bm25", "dpr", "eadpr"], ["q1", "q2", "q3", "q4", "q5"])
    assert found["sets"] == {"main/dev": [0, 1, 2, 3], "more/dev": [3, 4]}
    # mrr3 says nothing of dpr's first hit of q5, at rank 5
    assert found["first"] == [[2, 2, 1, 1, 0], [2, 0, 2, 3, 0], [1, 1, 0, 1, 1]]
    assert found["values"]["aa"][1] == [[1, 0, 0, 1, 0], [1, 1, 0, 1, 1]]  # the tie of q2 counts against dpr
    assert found["overview"]["main/dev"]["means"]["eadpr"]["top1"][0] == 0.75
    assert found["overview"]["main/dev"]["differences"][0]["metrics"]["top1"][0] == 0.75
    said = {what: values for what, _, values in found["overview"]["main/dev"]["counts"]}
    assert said["questions with a ranking"] == [4, 3, 4]
    assert said["trained without a distractor"] == [None, 2, 2]
    assert said["positives without a distractor: an answer still stands in what is left"] == [1, 1, 1]


def test_intervals_are_those_of_the_report_drawn_one_by_one_or_together(inputs, tmp_path):
    from eadpr.evaluation.outcomes import Outcomes
    from eadpr.report.differences import compare
    from eadpr.report.plan import sampling_of

    found = unpacked(shown(inputs, tmp_path), "columns")["overview"]["main/dev"]["differences"][0]["metrics"]
    sides = [Outcomes([inputs.outcomes / f"{arm}.parquet"]).of_trainings("main/dev", "aa") for arm in ("eadpr", "dpr")]
    of = compare(*sides, sampling_of(REPORT)).interval
    assert found["aa"] == [round(of.estimate, 5), round(of.low, 5), round(of.high, 5), of.n]


@pytest.mark.parametrize(
    ("trainings", "of_eadpr"), [(["eadpr"], [1.0, 1.0, 1.0, 1]), (["eadpr", "again"], [1.0, 1.0, 1.0, 1]),
                                (["eadpr", "dpr"], None)]
)  # fmt: skip
def test_what_shares_no_question_is_left_out(inputs, tmp_path, trainings, of_eadpr):
    folder = shutil.copytree(inputs.records.parent, tmp_path / "toy")
    own = ExploreInputs(*(folder / path.relative_to(inputs.records.parent) for path in inputs))
    for arm, question in (("dpr", "q1"), ("eadpr", "q2")):
        pairs = [row for row in tables.rows(own.pairs / f"{arm}.parquet", PairScore) if row.question_id == question]
        tables.write(own.pairs / f"{arm}.parquet", PairScore, pairs)
        evaluated(folder, arm)
    shutil.copy(own.outcomes / "eadpr.parquet", own.outcomes / "again.parquet")
    settings = REPORT.model_copy(update={"trainings": {"dpr": ["dpr"], "eadpr": trainings}})
    explore.run(own, tmp_path / "page.html", "toy", settings, SETS)
    found = unpacked((tmp_path / "page.html").read_bytes(), "columns")["overview"]["main/dev"]
    assert found["means"]["eadpr"].get("aa") == of_eadpr
    assert "top1" in found["differences"][0]["metrics"]
    assert ("aa" in found["differences"][0]["metrics"]) is False


def test_a_row_of_several_trainings_has_their_mean_and_its_first_is_shown(inputs, tmp_path):
    several = REPORT.model_copy(update={"trainings": {"dpr": ["dpr"], "eadpr": ["eadpr", "bm25"]}})
    explore.run(inputs, tmp_path / "page.html", "toy", several, SETS)
    found = unpacked((tmp_path / "page.html").read_bytes(), "columns")
    assert found["overview"]["main/dev"]["means"]["eadpr"]["top1"][0] == (0.75 + 0.5) / 2
    assert found["overview"]["main/dev"]["trainings"]["eadpr"] == 2
    assert found["arms"] == ["bm25", "dpr", "eadpr"]


def test_a_question_in_full_has_rankings_hits_positives_and_what_was_cut(inputs):
    shown = rankings.known(inputs, REPORT, [])["dpr"]
    chosen = gather.Chosen([shown], ["main/dev"], 2)
    asked = gather.questions(inputs, chosen)
    ranking = rankings.columns(shown, asked, 2)
    assert (ranking.passages["q1"], ranking.scores["q1"], ranking.decimals) == (["p4", "p2"], [9000, 8000], 3)
    number = rankings.Numbering()
    first = next(gather.details(inputs, chosen, asked, [ranking], REPORT, number))
    assert [number(one) for one in ("p4", "p2", "p1")] == [0, 1, 2]
    assert first["pool"] == packing.signs([0, 1, 1])
    assert first["ranked"] == [[packing.signs([0, 1]), packing.signs(packing.folded([9000, 1000]))]]
    start = explorer_toy.TEXT.index("Romulus")
    assert first["hits"] == [[1, [0, 7]], [2, [start, start + 7]]]
    (positive,) = first["positives"]
    assert (positive["passage"], positive["given"]) == (2, True)
    assert positive["pseudo"] == [start, start + 7]
    assert positive["removed"] == {"distractor": [start, start + 7], "placebo": [start - 15, start - 12]}
    assert positive["scores"] == {"positive": [2.0], "masked": [1.0], "distractor": [2.5], "placebo": [1.5]}


def test_a_fused_ranking_and_a_collection_without_pairs_are_shown(inputs, tmp_path):
    folder = shutil.copytree(inputs.records.parent, tmp_path / "toy")
    own = ExploreInputs(*(folder / path.relative_to(inputs.records.parent) for path in inputs))
    shutil.copytree(own.rankings / "eadpr", own.rankings / "hybrid")
    for arm in ("dpr", "eadpr"):
        (own.pairs / f"{arm}.parquet").unlink()
        evaluated(folder, arm, pairs=None)
    shutil.copy(own.outcomes / "eadpr.parquet", own.outcomes / "hybrid.parquet")
    for name in ("aa_by_type", "score_differences"):
        lines = (own.report / f"{name}.csv").read_text().splitlines()
        (own.report / f"{name}.csv").write_text(f"{lines[0]}\n")
    fused = REPORT.model_copy(update={"fused": ["hybrid"]})
    explore.run(own, tmp_path / "page.html", "toy", fused, SETS)
    written = (tmp_path / "page.html").read_bytes()
    found = unpacked(written, "columns")
    assert found["arms"] == ["bm25", "dpr", "eadpr", "hybrid"]
    assert [*found["metrics"]] == ["top1", "top2", "mrr3"]
    assert found["overview"]["main/dev"]["types"] == []
    assert all(one["scores"] == {} for detail in unpacked(written, "details0") for one in detail["positives"])


def test_rankings_among_near_duplicates_are_shown_with_what_was_measured_of_them(inputs, tmp_path):
    explore.run(inputs, tmp_path / "page.html", "toy", WITH_ALL, SETS, counts=COUNTS)
    written = (tmp_path / "page.html").read_bytes()
    found = unpacked(written, "columns")
    assert (found["arms"][3:], found["aside"]) == (["eadpr+removed-1"], ["eadpr+removed-1"])
    assert found["said"][:3] == ["", "", ""]
    assert found["said"][3].startswith("eadpr’s ranking when a near-duplicate of each question's positive stood in")
    assert found["first"][3] == [2, 1, 0, 1, 1]  # q1's near-duplicate pushed the first hit down
    detail = unpacked(written, "details0")[0]
    assert detail["positives"][0]["scores"]["positive"] == [None, 2.0, 5.0, 5.0]  # the same encoder
    explore.run(inputs, tmp_path / "page.html", "toy", WITH_ALL, SETS, counts=COUNTS, arms=["eadpr+removed-3", "dpr"])
    found = unpacked((tmp_path / "page.html").read_bytes(), "columns")
    assert (found["arms"], found["aside"]) == (["eadpr+removed-3", "dpr"], [])
    assert found["first"][0][0] == 3
    with pytest.raises(ValueError, match=r"--arm eadpr\+removed-2: .*known are .*eadpr\+removed-1, eadpr\+removed-3"):
        explore.run(inputs, tmp_path / "p.html", "toy", WITH_ALL, SETS, counts=COUNTS, arms=["eadpr+removed-2"])


def test_a_near_duplicate_has_its_text_and_says_what_it_is_like(inputs):
    shown = rankings.known(inputs, WITH_ALL, COUNTS)["eadpr+removed-3"]
    asked = gather.questions(inputs, gather.Chosen([shown], ["main/dev"], 3))
    found = rankings.columns(shown, asked, 3).passages
    first, second = (rankings.AddedPassage("removed", "q1", number) for number in range(2))
    assert (found["q1"], found["q2"]) == ([first, second, "p1"], ["p3", first, "p1"])
    number = rankings.Numbering()
    assert [number(one) for one in (second, "p3", first)] == [0, 1, 2]
    texts = list(number.texts(PassageStore(inputs.records / "passages.parquet"), [shown]))
    assert texts[0] == ["removed 2 for q1", "Rome", "It was.", "p1", "q1"]
    assert [text[0] for text in texts[1:]] == ["p3", "removed 1 for q1"]


def test_answers_of_readers_stand_with_the_rankings_that_are_shown(inputs, tmp_path):
    explore.run(inputs, tmp_path / "page.html", "toy", WITH_ALL, SETS, counts=COUNTS, arms=["dpr", "bm25"])
    written = (tmp_path / "page.html").read_bytes()
    assert unpacked(written, "columns")["readersOfPaths"] == ["hops"]
    first, second, third, *_ = unpacked(written, "details0")
    read = [["extractive", 1, 1, "Romulus", 1], ["extractive", 1, 5, "<b>Remus</b>", 0], ["hops", 1, 1, "Romulus", 1]]
    assert (first["read"], second["read"], third["read"]) == (read, [["extractive", 1, 1, "", 0]], [])


def test_what_fused_rankings_and_those_of_two_hops_are_is_said(inputs):
    settings = REPORT.model_copy(update={"fused": ["hybrid", "mdr"], "one_hop": {"mdr": "eadpr"}})
    said = {one.name: one.said for one in rankings.known(inputs, settings, []).values()}
    assert said == {
        "bm25": "", "dpr": "", "eadpr": "", "hybrid": "one ranking made of two",
        "mdr": "two hops: the passages of the best paths, learnt on the examples of eadpr",
    }  # fmt: skip


def test_arms_sets_and_depth_are_chosen_by_hand(inputs, tmp_path):
    written = shown(inputs, tmp_path, arms=["eadpr", "bm25"], question_sets=["more/dev"], depth=1)
    found = unpacked(written, "columns")
    assert (found["arms"], found["ids"], found["depth"]) == (["eadpr", "bm25"], ["q4", "q5"], 1)
    assert all(len(of) == 1 for detail in unpacked(written, "details0") for of, _ in detail["ranked"])


def test_the_same_inputs_give_the_same_bytes_and_no_script_ends_early(inputs, tmp_path):
    written = shown(inputs, tmp_path)
    assert written == shown(inputs, tmp_path)
    assert written.count(b"</script>") == written.count(b"<script")
    assert b"http" not in written.replace(b"http://www.w3.org/2000/svg", b"").replace(b"http-equiv", b"")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"arms": ["ance"]}, r"--arm ance: was not measured; known are bm25, dpr, eadpr"),
        ({"question_sets": ["nq/test"]}, r"--set nq/test: was not measured; known are main/dev, more/dev"),
    ],
)
def test_what_was_not_measured_is_named(inputs, tmp_path, chosen, message):
    with pytest.raises(ValueError, match=message):
        shown(inputs, tmp_path, **chosen)


def test_a_ranking_that_is_missing_or_another_collection_s_is_named(inputs, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"evaluate\.parquet.*dvc repro"):
        shown(inputs._replace(rankings=tmp_path), tmp_path)
    for name in ("bm25", "dpr", "eadpr"):
        tables.write(tmp_path / name / "evaluate.parquet", Ranked, [Ranked("other", "p1", 1, 2.0)])
    with pytest.raises(ValueError, match=r"bm25/evaluate\.parquet has no passages for the 5 questions .*another coll"):
        shown(inputs._replace(rankings=tmp_path), tmp_path)


def test_a_set_without_questions_and_a_report_that_is_missing_are_named(inputs, tmp_path):
    sets = SETS.model_copy(update={"evaluate": ["main/train"]})
    with pytest.raises(ValueError, match=r"'main/train' is not in .*holds main/dev, more/dev"):
        explore.run(inputs, tmp_path / "page.html", "toy", REPORT, sets)
    with pytest.raises(FileNotFoundError, match=r"topk\.csv does not exist; run `dvc repro report`"):
        shown(inputs._replace(report=tmp_path), tmp_path)


def test_frequent_words_and_numbers_are_packed_small_and_come_back():
    texts = [["p", "Title", f"the the the cat {i} sat \\n \u0001 „é“ 🜂"] for i in range(9)]
    found = packing.frequent(texts)
    assert found == [" the", "the", " sat", " cat", "Title"][: len(found)] or set(found) >= {" the", " cat", " sat"}
    short = packing.shortener(found)(packing.plain(texts))
    assert len(short) < len(packing.plain(texts))
    codes = {packing.shortener(found)(word): word for word in found}
    assert re.sub(r"[\x01-\x1c][ -~]|[\x1d-\x1f][ -~]{2}", lambda code: codes[code[0]], short) == packing.plain(texts)
    assert [ord(sign) for sign in packing.signs([0, 92, 0xD800 - 0x23])] == [0x23, 0x7F, 0xE000]
    assert [*packing.folded([0, -1, 1, -2, 2])] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="Out of range float"):
        packing.plain([float("nan")])


def test_the_title_is_text(inputs):
    written = page("a <b> & {{data}}", packing.PackedPage(b"", b"", [], [])).decode()
    assert "<title>a &lt;b&gt; &amp; {{data}}: explorer</title>" in written


def test_every_measure_and_form_is_explained():
    assert "without the answer" in words.meaning("aa")
    assert words.meaning("top20").endswith("first 20.")
    assert "“gold”" in words.meaning("aa_gold")
    assert words.form("masked_cut") == "without the answer; the encoder does not read that far"
    assert words.form("gold") == "without what “gold” takes for evidence"


def test_rankings_of_what_is_not_active_are_deleted(tmp_path):
    for name in ("bm25", "old"):
        files.write_text(tmp_path / name / "evaluate.parquet", "")
    assert explore.remove_inactive(tmp_path, Explore(rankings=["bm25"], near_duplicates=[])) == [tmp_path / "old"]
    assert [path.name for path in tmp_path.iterdir()] == ["bm25"]


def test_the_command_finds_the_collection_and_what_the_pipeline_made(inputs, tmp_path, monkeypatch):
    folder = shutil.copytree(inputs.records.parent, tmp_path / "data" / "toy")
    inputs = ExploreInputs(*(folder / path.relative_to(inputs.records.parent) for path in inputs))
    shutil.move(inputs.report, tmp_path / "reports" / "toy")
    monkeypatch.chdir(tmp_path)
    given = {"arm": ["eadpr"], "question_set": [], "depth": 3, "out": None}
    with pytest.raises(ValueError, match=r"--collection: none is named; known are none: run `dvc repro`"):
        command.by_hand(collection=None, **given)
    every = Explore(rankings=["bm25", "dpr", "eadpr"], near_duplicates=[])
    config = tmp_path / "data" / "toy" / "configs" / "explore.json"
    config.parent.mkdir()
    write_config(config, report=REPORT, sets=SETS, explore=every)
    with pytest.raises(ValueError, match=r"--collection: 'other' was not measured; known are toy"):
        command.by_hand(collection="other", **given)
    said = command.by_hand(collection=None, **given)
    assert re.fullmatch(r"5 questions, 1 rankings, \d\.\d MB in explore-toy\.html", said)
    paths = {name: path for name, path in inputs._asdict().items() if name != "report"}
    given = {**paths, "measured": tmp_path / "reports" / "toy", "out": tmp_path / "reports" / "toy.html"}
    (inputs.rankings / "old").mkdir()
    said = command.main.main(REPORT, SETS, every, **given)
    assert said.startswith(f"explore: deleted {inputs.rankings / 'old'}, a ranking of what is not active")
    assert (tmp_path / "reports" / "toy.html").exists()
