"""`ask`: what is found, what is read in it, which answer is given and how it is shown."""

import json
import os
import subprocess
import sys
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from eadpr import tables
from eadpr.asking.ask import Answer, Reply, as_json, ask, marginal, marked, shown
from eadpr.asking.evidence import NOTHING, Annotators, PassageAnswer, reading
from eadpr.asking.finder import Finder, FoundPassage
from eadpr.config import Sets
from eadpr.machine import Machine
from eadpr.records import Evidence, Passage, Question, ScoredSpan, Span
from eadpr.search.config import Encode
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.supervision import annotator_manifest, answer_nll, qa_model, small_t5
from eadpr.supervision.annotator_manifest import Manifest, Model, Prompt
from eadpr.supervision.config import EvidenceSettings, Recipe
from eadpr.supervision.pairs import Pair
from eadpr.training.encoder import load
from tests.repository import ROOT
from tests.small_collection import (
    ENCODE,
    MACHINE,
    WORDS,
    passages,
    question,
    write_config,
    write_model,
    write_records,
)
from tests.supervision_toy import RECIPE

HARDWARE = Machine(**MACHINE)
EVIDENCE = EvidenceSettings(strategies=["gold"], placebo_of="gold", segmenter="sentence", window=0, input_tokens=64)
ANN = Passage("p1", "Ann Moor", "Ann Moor writes. She was born in Leeds. Leeds is grey.", None)
BOB = Passage("p2", "", "Bob sings.", None)


def pair_of(answer: str, passage: Passage = ANN) -> Pair:
    asked = Question("", "Where was Ann born?", [answer] if answer else [], "string", None, None, None, None)
    return Pair(asked, passage, None)


def row_of(pair: Pair, nlls: list[float], full: float) -> Evidence:
    spans = [ScoredSpan(0, 16, nlls[0]), ScoredSpan(17, 39, nlls[1]), ScoredSpan(40, 54, nlls[2])]
    return Evidence("", pair.passage.id, "pseudo", pair.target, spans, [int(np.argmax(nlls))], full)


def test_evidence_is_the_share_of_the_likelihood_that_its_span_takes_away():
    """Likelihood 0.8 with all, 0.2 without the second sentence: three quarters are lost."""
    found = reading(pair_of("leeds"), row_of(pair_of("leeds"), [-log(0.8), -log(0.2), -log(0.6)], -log(0.8)))
    assert found[0] == "Leeds"  # as the passage writes it
    assert (found.likelihood, found.evidence) == pytest.approx((0.8, 0.75))
    assert found.span == Span(17, 39)


def test_where_every_span_makes_the_answer_more_likely_none_is_evidence():
    found = reading(pair_of("York"), row_of(pair_of("York"), [1.0, 1.5, 1.2], 2.0))
    assert found == ("York", pytest.approx(exp(-2)), None, 0.0)
    assert reading(pair_of(""), row_of(pair_of(""), [1.0, 1.5, 1.2], 2.0)) == NOTHING


FOUND = [FoundPassage(ANN._replace(id=f"p{i}"), score) for i, score in enumerate([log(5), log(3), log(2)])]


def test_equal_answers_of_several_passages_add_up():
    """Passages have shares 0.5, 0.3, 0.2: Leeds 0.3 * 0.9 + 0.2 * 0.8 = 0.43, York 0.5 * 0.8 = 0.4."""
    readings = [
        PassageAnswer("York", 0.8, None, 0.1),
        PassageAnswer("Leeds", 0.9, None, 0.2),
        PassageAnswer("the leeds.", 0.8, None, 0.3),
    ]
    answer = marginal(FOUND, readings)
    assert answer == ("Leeds", pytest.approx(0.43), "p1")
    assert marginal(FOUND[:1], readings[:1]) == ("York", pytest.approx(0.8), "p0")
    assert marginal(FOUND, [NOTHING] * 3) == marginal([], []) == Answer("", 0.0, None)


def test_equal_scores_go_to_the_better_passage():
    found = [FoundPassage(ANN._replace(id="a"), 1.0), FoundPassage(ANN._replace(id="b"), 1.0)]
    assert marginal(found, [PassageAnswer("x", 0.5, None, 0), PassageAnswer("y", 0.5, None, 0)])[0] == "x"


def test_signs_stand_around_evidence_and_answers():
    assert marked(ANN.text, PassageAnswer("Leeds", 1.0, Span(40, 54), 1.0)) == (
        "Ann Moor writes. She was born in *Leeds*. [[*Leeds* is grey.]]"
    )
    assert marked("in Leeds", PassageAnswer("Leeds", 1.0, Span(0, 8), 1.0)) == "[[in *Leeds*]]"
    assert marked("in Leeds", NOTHING) == "in Leeds"


def asked_of(score: float, evidence: float) -> Reply:
    readings = [PassageAnswer("Leeds", 0.9, Span(17, 39), evidence), NOTHING]
    return Reply(
        "Where?", Answer("Leeds", score, "p1"), evidence, [FoundPassage(ANN, 2.5), FoundPassage(BOB, -1.0)], readings
    )


def test_what_is_shown():
    assert shown(asked_of(0.75, 0.875)).splitlines() == [
        "Where?",
        "Leeds   score 0.750, evidence 0.875",
        "",
        "1. Ann Moor   p1, score 2.500; Leeds: likelihood 0.900, evidence 0.875",
        "   Ann Moor writes. [[She was born in *Leeds*.]] *Leeds* is grey.",
        "",
        "2. (no title)   p2, score -1.000; no answer: likelihood 0.000, evidence 0.000",
        "   Bob sings.",
    ]
    first, second = as_json(asked_of(0.75, 0.875))["passages"]
    assert (first["span"], first["answer"], second["span"]) == ({"start": 17, "end": 39}, "Leeds", None)


@pytest.mark.parametrize(
    ("score", "evidence", "low"),
    [(0.75, 0.25, True), (0.25, 0.75, True), (0.5, 0.5, False), (0.75, 0.875, False)],  # at the threshold: not low
)
def test_a_low_score_is_said_in_both_forms(score, evidence, low):
    asked = asked_of(score, evidence)
    said = "; low: the passages may not hold the answer" if low else ""
    assert shown(asked).splitlines()[1] == f"Leeds   score {score:.3f}, evidence {evidence:.3f}{said}"
    assert as_json(asked)["low"] is low


def test_no_answer_at_all_is_said_and_low():
    """Once nothing is read in what is found, once nothing is found."""
    asked = ask("Where?", top=1, find=lambda q, k: [FoundPassage(BOB, 1.0)][:k], answer=lambda q, p: [NOTHING])
    nothing = ["Where?", "no answer   score 0.000, evidence 0.000; low: the passages may not hold the answer"]
    assert shown(asked).splitlines() == [
        *nothing,
        "",
        "1. (no title)   p2, score 1.000; no answer: likelihood 0.000, evidence 0.000",
        "   Bob sings.",
    ]
    found = as_json(asked)
    assert found["answer"] == {"text": "", "score": 0.0, "passage_id": None}
    assert (found["evidence"], found["low"]) == (0.0, True)
    empty = ask("Where?", top=1, find=lambda q, k: [], answer=lambda q, p: [])
    assert shown(empty).splitlines() == nothing
    assert as_json(empty) == found | {"passages": []}


def write_annotator(folder: Path, texts: list[str], *folds: list[str]) -> Path:
    """T5s of random weights, one per fold, which are ids of the questions learnt from."""
    import torch

    recipe = Recipe(**RECIPE)
    tokenizer = small_t5.train_tokenizer(texts, vocabulary=recipe.vocabulary)
    for number in range(len(folds)):
        torch.manual_seed(number)
        model = small_t5.new_model(recipe, vocabulary=len(tokenizer))
        (folder / f"fold-{number}").mkdir(parents=True)
        qa_model.save(folder / f"fold-{number}", model.eval(), tokenizer)
    prompt = Prompt("{question} \\n {context}", True)
    models = [Model(f"fold-{number}", ids) for number, ids in enumerate(folds)]
    annotator_manifest.write_manifest(folder, Manifest("build", prompt, models, {}))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A collection as `dvc repro` leaves it: `toy` with the arm `dpr`; one passage has no text, one sentences."""
    folder = tmp_path_factory.mktemp("asked") / "data" / "toy"
    rows = passages()
    rows[3] = rows[3]._replace(text="", sentences=None)
    rows[4] = rows[4]._replace(text="w1 w2 w3", sentences=[Span(0, 3), Span(3, 8)])
    records = write_records(folder / "records", rows, [], 0)
    model = write_model(folder / "models" / "dpr")
    encode(
        records / "passages.parquet", model, folder / "vectors" / "dpr", settings=Encode(**ENCODE), hardware=HARDWARE
    )
    write_annotator(folder / "annotator", [row.text for row in rows if row.text] * 3, ["q1"])
    sets = Sets(train=[], evaluate=[], annotator=[]).model_dump()
    found = {"evidence": EVIDENCE.model_dump(), "endpoint": None, "sets": sets, "machine": MACHINE}
    write_config(folder / "configs" / "evidence.json", **found)
    return folder


def test_what_is_found_is_the_best_of_all_passages(made):
    find = Finder(made / "records", made / "models" / "dpr", made / "vectors" / "dpr")
    everything = find("where was ada born", 99)
    rows = {row.id: row for row in tables.rows(made / "records" / "passages.parquet", Passage)}
    assert [rows[one.passage.id] for one in everything] == [one.passage for one in everything]
    assert len(everything) == len(rows)
    vectors = Vectors(made / "vectors" / "dpr").take(np.arange(len(rows))).astype(np.float64)
    encoder = load(made / "models" / "dpr", "question")
    asked = embed(encoder, encoder.question_ids(["where was ada born"]))[0]
    naive = dict(zip(rows, (vectors @ asked).tolist(), strict=True))
    assert {one.passage.id: pytest.approx(one.score, rel=1e-5) for one in everything} == naive
    assert [one.score for one in everything] == sorted((one.score for one in everything), reverse=True)
    assert find("where was ada born", 4) == everything[:4]


def test_an_empty_question_and_other_vectors_are_errors(made, tmp_path):
    find = Finder(made / "records", made / "models" / "dpr", made / "vectors" / "dpr")
    with pytest.raises(ValueError, match="the question is empty"):
        find("  ", 3)
    write_records(tmp_path, passages(5), [], 0)
    with pytest.raises(ValueError, match=r"37 vectors, .*passages\.parquet 5 passages; run `dvc repro`"):
        Finder(tmp_path, made / "models" / "dpr", made / "vectors" / "dpr")


def test_readings_equal_a_loop_over_passages_and_spans(made):
    """The answer by generating for one passage alone, every likelihood by scoring one input alone."""
    annotator = Annotators(made / "annotator", EVIDENCE, HARDWARE, questions=made / "records" / "questions.parquet")
    rows = list(tables.rows(made / "records" / "passages.parquet", Passage))[:6]
    model, tokenizer = qa_model.load(str(made / "annotator" / "fold-0"))
    prompt = annotator_manifest.read_manifest(made / "annotator").prompt

    def nll(passage: Passage, text: str, answer: str) -> float:
        request = (prompt.input("where?", passage.title, text), answer)
        return float(answer_nll.answer_nlls(model, tokenizer, [request], input_tokens=64)[0])

    found = annotator("where?", rows)
    assert found[3] == NOTHING
    for passage, one in zip(rows, found, strict=True):
        if not passage.text:
            continue
        ids = tokenizer(prompt.input("where?", passage.title, passage.text), return_tensors="pt").input_ids[:, :64]
        answer = tokenizer.decode(model.generate(ids, max_new_tokens=32)[0], skip_special_tokens=True).strip()
        assert one.answer.lower() == answer
        if answer:
            full = nll(passage, passage.text, answer)
            spans = passage.sentences or [Span(0, len(passage.text))]
            without = [nll(passage, (passage.text[: s.start] + passage.text[s.end :]).strip(), answer) for s in spans]
            assert one.likelihood == pytest.approx(exp(-full), rel=1e-4)
            assert one.evidence == pytest.approx(max(0, 1 - exp(full - max(without))), abs=1e-4)
            assert one.span == (spans[int(np.argmax(without))] if max(without) > full else None)


def test_without_an_annotator_it_says_so(tmp_path):
    annotator_manifest.write_manifest(tmp_path, Manifest("none", Prompt("{question} {context}", True), [], {}))
    with pytest.raises(ValueError, match=r"annotator\.model is none"):
        Annotators(tmp_path, EVIDENCE, HARDWARE, questions=tmp_path / "questions.parquet")


def test_a_question_is_read_by_a_model_that_did_not_learn_from_it(tmp_path):
    """Both learnt from q2; the text of q0 is asked again as q3, of the other half."""
    rows = passages()
    asked = [question(f"q{i}", text, []) for i, text in enumerate(["Where w1?", "where w2?", "w3?", "where w1?"])]
    write_records(tmp_path / "records", rows, asked, 0)
    texts = [row.text for row in rows if row.text] * 3
    folder = write_annotator(tmp_path / "annotator", texts, ["q0", "q2"], ["q1", "q2"])
    both = Annotators(folder, EVIDENCE, HARDWARE, questions=tmp_path / "records" / "questions.parquet")
    assert [both.model_for(text) for text in (" where W1? ", "where w2?", "w3?", "new?")] == [1, 0, 0, 0]
    (tmp_path / "alone").mkdir()
    annotator_manifest.write_manifest(
        tmp_path / "alone",
        Manifest("build", annotator_manifest.read_manifest(folder).prompt, [Model(str(folder / "fold-1"), ["q1"])], {}),
    )
    alone = Annotators(tmp_path / "alone", EVIDENCE, HARDWARE, questions=tmp_path / "none.parquet")
    assert both("where w1?", rows[:2]) == alone("where w1?", rows[:2])


def command(made: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-m", "stages.ask", *arguments, "--collection", "toy"]
    folder = made.parents[1]
    return subprocess.run(words, cwd=folder, env=environment, input=given, capture_output=True, text=True, check=False)


def test_the_command_answers_every_line_after_one_load(made):
    lines = command(made, "--interactive", "--json", "--arm", "dpr", "--top", "2", given="where was ada\n\nw1 w2\n")
    assert lines.returncode == 0, lines.stderr
    found = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [one["question"] for one in found] == ["where was ada", "w1 w2"]
    assert [len(one["passages"]) for one in found] == [2, 2]
    assert all(one["low"] == (min(one["answer"]["score"], one["evidence"]) < 0.5) for one in found)
    assert all(set(WORDS).intersection(one["passages"][0]["text"].split()) for one in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["who?"], "error: --arm eadpr: data/toy has no vectors of it (it has those of dpr); run `dvc repro`"),
        ([], "error: give either a question or --interactive"),
        (["who?", "--interactive"], "error: give either a question or --interactive"),
        (["", "--arm", "dpr"], "error: the question is empty; ask one"),
    ],
)
def test_mistakes_end_in_a_line(made, arguments, message):
    done = command(made, *arguments)
    assert done.returncode == 1
    assert done.stderr.strip().startswith(message)
