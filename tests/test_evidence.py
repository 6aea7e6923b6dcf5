"""Evidence by every strategy, the scores of the QA model against scoring one by one, and evidence accuracy."""

import json

import numpy as np
import pytest
import torch

from eadpr.evaluation.evidence import evaluate_evidence, judge_spans, measure_pair
from eadpr.runtime import cache, files
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, Passage, Positive, Question, ScoredSpan, Span
from eadpr.supervision import answer_nll, evidence, qa_model, small_t5
from eadpr.supervision.answer_nll import answer_nlls
from eadpr.supervision.config import Recipe
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.evidence import Annotate, choose_by_nll, find_by_rule, find_evidence, windows
from eadpr.supervision.manifest import Manifest, Model, Prompt, write_manifest
from eadpr.supervision.pairs import Pair
from eadpr.training.pretrained import save_whole
from tests.supervision_toy import EVIDENCE, HARDWARE, RECIPE, SEPARATE, write_collection
from tests.test_distractors import CUT

TEXT = "Ann liked tea. She was born in Rome, Italy. Rome is old. Nobody knows why."
PROMPT = Prompt("{question} \\n {context}", lowercase=True)


def pair(answers=("Rome",), *, kind="string", gold=None, text=TEXT, sentences=None, question_id="q") -> Pair:
    question = Question(question_id, "Where was Ann born?", list(answers), kind, None, None, None, None)
    return Pair(question, Passage("p", "Ann", text, sentences), gold)


def chosen(row: Evidence, text: str = TEXT) -> list[str]:
    return [text[row.spans[i].start : row.spans[i].end] for i in row.chosen]


@pytest.mark.parametrize(("strategy", "expected"), [
    ("gold", ["She was born in Rome, Italy."]),
    ("sentence", ["She was born in Rome, Italy.", "Rome is old."]),
    ("window", ["born in Rome, Italy. Rome is old."]),
    ("answer", ["Rome", "Rome"]),
])  # fmt: skip
def test_by_rule(strategy, expected):
    row = find_by_rule(pair(gold=[Span(31, 35)]), strategy, EVIDENCE)
    assert chosen(row) == expected
    assert (row.target, row.nll_full, {span.nll for span in row.spans}) == ("Rome", None, {None})


def test_gold_takes_every_supporting_sentence_and_given_sentences_win():
    expected = ["Ann liked tea.", "Rome is old."]
    assert chosen(find_by_rule(pair(gold=[Span(0, 14), Span(44, 56)]), "gold", EVIDENCE)) == expected
    given_sentences = [Span(0, 43), Span(44, len(TEXT))]
    assert chosen(find_by_rule(pair(gold=[Span(31, 35)], sentences=given_sentences), "gold", EVIDENCE)) == [TEXT[:43]]
    for strategy in ("gold", "sentence", "window", "answer"):
        assert find_by_rule(pair(answers=["Paris"]), strategy, EVIDENCE).chosen == []


@pytest.mark.parametrize("strategy", ["sentence", "window", "answer"])
def test_a_match_of_white_space_alone_is_no_evidence(strategy):
    row = find_by_rule(pair([r"\s+"], kind="regex"), strategy, EVIDENCE)
    assert (row.chosen, row.target) == ([], "")
    with_word = find_by_rule(pair([r"\s+", "tea"], kind="regex"), strategy, EVIDENCE)
    assert ["tea" in piece for piece in chosen(with_word)] == [True]


def test_target_of_a_pattern_is_what_it_matches():
    assert pair(["r[a-z]me", "tea"], kind="regex").target == "tea"
    assert (pair(["xyz"], kind="regex").target, pair([]).target) == ("", "")
    assert pair(["Rome", "Roma"]).target == "Rome"


def test_windows():
    text = "a b c d e f g"
    assert windows(text, [Span(6, 7)], 1) == [Span(4, 9)]
    assert windows(text, [Span(0, 1), Span(12, 13)], 2) == [Span(0, 5), Span(8, 13)]
    assert windows(text, [Span(2, 3), Span(6, 7)], 1) == [Span(0, 9)]
    assert windows("(Rome), Italy", [Span(1, 5)], 0) == [Span(1, 5)]


@pytest.fixture(scope="module")
def tiny():
    """A random T5 and a byte-pair tokenizer."""
    tokenizer = small_t5.train_tokenizer([TEXT.lower()] * 3, vocabulary=512)
    torch.manual_seed(0)
    return small_t5.new_model(Recipe(**RECIPE), vocabulary=len(tokenizer)).eval(), tokenizer


def test_pooled_scores_equal_scores_one_by_one(tiny, monkeypatch):
    """Inputs and targets of many lengths, in batches of many sizes, against Hugging Face's own loss of each alone."""
    model, tokenizer = tiny
    rng = np.random.default_rng(0)
    words = TEXT.lower().split()
    requests = [
        (" ".join(rng.choice(words, rng.integers(1, 60))), " ".join(rng.choice(words, rng.integers(1, 5))))
        for _ in range(40)
    ]
    requests += requests[:3]
    alone = []
    for source, target in requests:
        ids = tokenizer([source], truncation=True, max_length=64, return_tensors="pt").input_ids
        with torch.no_grad():
            alone.append(model(input_ids=ids, labels=tokenizer([target], return_tensors="pt").input_ids).loss.item())
    for budget in (1, 300, 8_192):
        monkeypatch.setitem(answer_nll.BATCH_TOKENS, "cpu", budget)
        assert np.abs(answer_nlls(model, tokenizer, requests, input_tokens=64) - alone).max() < 1e-4


@pytest.mark.parametrize(("lengths", "cut"), [
    ([1, 1, 2, 5, 5, 6, 19, 20, 21], [[1, 1, 2], [5, 5], [6], [19], [20], [21]]),  # a fourth is 5
    ([4] * 6 + [5, 6], [[4] * 5, [4], [5], [6]]),
    ([1, 2, 3, 4], [[1, 2], [3, 4]]),
    ([5, 5, 6, 6, 6, 6], [[5, 5], [6, 6, 6], [6]]),
    ([], []),
])  # fmt: skip
def test_batches_keep_the_budget_and_large_ones_have_one_length(lengths, cut):
    keys = [((0,) * n, (1,)) for n in lengths]
    assert [[len(key[0]) for key in batch] for batch in answer_nll.batches(keys, 20)] == cut


def test_an_answer_is_scored_with_its_question(tiny):
    """The published code scored the whole passage without the question (methods.md 3)."""
    requests = Annotate(EVIDENCE, MANIFEST, None).requests(pair())
    assert requests[-1] == ("where was ann born? \\n (ann) " + TEXT.lower(), "rome")
    assert requests[1] == ("where was ann born? \\n (ann) ann liked tea. rome is old. nobody knows why.", "rome")
    assert len(requests) == 5


def test_the_span_with_the_highest_nll_is_chosen():
    spans = [Span(0, 14), Span(15, 43), Span(44, 56)]
    row = choose_by_nll(pair(), spans, np.array([0.5, 2.0, 2.0, 0.25], dtype=np.float32))
    assert row.chosen == [1]
    assert row.spans == [ScoredSpan(0, 14, 0.5), ScoredSpan(15, 43, 2.0), ScoredSpan(44, 56, 2.0)]
    assert row.nll_full == 0.25


PSEUDO = EVIDENCE.model_copy(update={"strategies": ["pseudo"]})
MANIFEST = Manifest("build", PROMPT, [Model("m", [])], {})


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_passage_without_text_has_no_evidence(text):
    """Some of HotpotQA's pages have no sentence."""
    (row,) = Annotate(PSEUDO, MANIFEST, None)([pair(text=text)])
    assert (row.spans, row.chosen) == ([], [])


def test_a_passage_of_ten_thousand_words_is_read_as_far_as_the_model_reads():
    """Each of its spans would otherwise cost the tokenisation of all the others."""
    text = TEXT + " Number one was never in town." * 1_700
    seen = []

    def score(model, requests):
        seen.extend(source for source, _ in requests)
        return np.array(["rome, italy" not in source for source, _ in requests], dtype=np.float32)

    (row,) = Annotate(PSEUDO, MANIFEST, score)([pair(text=text)])
    assert chosen(row, text) == ["She was born in Rome, Italy."]
    assert len(row.spans) == len(seen) - 1 == 1_704
    assert max(map(len, seen)) < evidence.CHARACTERS * EVIDENCE.input_tokens + 60
    assert seen[1_000] == seen[-1], "without a span beyond it, it is what the model reads"
    assert len(seen[-1]) > 10 * EVIDENCE.input_tokens


def test_every_question_goes_to_the_model_that_did_not_see_it():
    """A stand-in scores by the length of the input, so the longest span removed has the lowest score."""
    manifest = Manifest("build", PROMPT, [Model("fold-0", ["b"]), Model("fold-1", ["a"])], {})
    calls = []

    def score(model, requests):
        calls.append((model, len(requests)))
        return np.array([len(source) for source, _ in requests], dtype=np.float32)

    pairs = [pair(question_id=i) for i in ("a", "b", "a")] + [pair([], question_id="b")]
    rows = list(Annotate(PSEUDO, manifest, score)(pairs))
    assert calls == [(0, 10), (1, 5)]
    assert [row.question_id for row in rows] == ["a", "b", "a", "b"]
    assert [chosen(row) for row in rows[:3]] == [["Rome is old."]] * 3
    assert (rows[3].chosen, rows[3].target, rows[3].nll_full) == ([], "", None)


@pytest.fixture
def stage(tmp_path, tiny):
    """A collection with an annotator of one random model."""
    records, positives = write_collection(tmp_path)
    model, tokenizer = tiny
    folder = tmp_path / "annotator"
    save_whole(folder / "fold-0", model, tokenizer)
    write_manifest(folder, Manifest("build", PROMPT, [Model("fold-0", ["q6", "q7"])], {}))
    return {
        "records": records, "positives": positives, "annotator_folder": folder, "out": tmp_path / "evidence.parquet",
    }  # fmt: skip


def test_the_stage_writes_every_strategy_of_every_pair_in_order(stage, monkeypatch):
    monkeypatch.setattr(evidence, "SHARD", 4)
    assert find_evidence(EVIDENCE, SEPARATE, HARDWARE, **stage) == 30
    rows = list(tables.rows(stage["out"], Evidence))
    expected = [(f"q{i}", strategy) for i in range(6) for strategy in EVIDENCE.strategies]
    assert [(row.question_id, row.strategy) for row in rows] == expected
    first = rows[0]
    model, tokenizer = qa_model.load(str(stage["annotator_folder"] / "fold-0"))
    text = "where was person 0 born? \\n (person 0) person 0 was born in arlo. nobody knows why."
    (nll,) = answer_nlls(model, tokenizer, [(text, "arlo")], input_tokens=128)
    assert first.spans[0].nll == pytest.approx(nll, abs=1e-4)
    assert first.chosen == [int(np.argmax([span.nll for span in first.spans]))]


def test_a_model_that_chooses_nothing_is_not_loaded(stage, monkeypatch):
    monkeypatch.setattr(qa_model, "load", lambda *_, **__: pytest.fail("loaded"))
    settings = EVIDENCE.model_copy(update={"strategies": ["gold"]})
    assert find_evidence(settings, SEPARATE, HARDWARE, **stage) == 6


def test_pairs_are_joined_once_and_a_killed_stage_goes_on_with_them(stage, monkeypatch):
    monkeypatch.setattr(evidence, "SHARD", 4)
    calls, joined = [], evidence.pairs.read_pairs
    monkeypatch.setattr(
        evidence.pairs, "read_pairs", lambda *inputs, **options: calls.append(inputs) or joined(*inputs, **options)
    )
    shards, annotate = [], Annotate.__call__

    def killed(self, pairs):
        shards.append([pair.question.id for pair in pairs])
        if len(shards) == 2:
            raise KeyboardInterrupt
        return annotate(self, pairs)

    monkeypatch.setattr(Annotate, "__call__", killed)
    with pytest.raises(KeyboardInterrupt):
        find_evidence(EVIDENCE, SEPARATE, HARDWARE, **stage)
    assert find_evidence(EVIDENCE, SEPARATE, HARDWARE, **stage) == 30
    assert len(calls) == 1
    assert not list(cache.root().glob("evidence/*/pairs.parquet"))
    assert shards == [["q0", "q1", "q2", "q3"], ["q4", "q5"], ["q4", "q5"]]
    resumed_hash = files.sha256(stage["out"])
    find_evidence(EVIDENCE, SEPARATE, HARDWARE, **stage)
    assert len(shards) == 5
    assert files.sha256(stage["out"]) == resumed_hash, "as of an undisturbed run"


SENTENCE, ROME = Span(15, 43), Span(31, 35)  # "She was born in Rome, Italy." and its answer


@pytest.mark.parametrize(("span", "gold", "answers", "expected"), [
    (SENTENCE, [ROME], ["Rome"], True),  # the sentence of the annotated answer
    (Span(15, 36), [ROME], ["Rome"], True),  # its clause
    (Span(44, 56), [ROME], ["Rome"], False),  # the answer at another place
    (Span(15, 36), [Span(31, 42)], ["Rome", "Rome, Italy"], False),  # less than the annotated answer
    (SENTENCE, [Span(20, 30)], ["Rome"], True),  # an annotation that is no answer must be covered as well
    (Span(15, 26), [Span(20, 30)], ["Rome"], False),
    (Span(15, 36), [SENTENCE], ["Rome"], True),  # the clause of the supporting sentence that holds the answer
    (Span(37, 43), [SENTENCE], ["Rome"], False),  # the clause that does not
    (Span(0, 30), [SENTENCE], ["Rome"], False),  # overlaps it without the answer
    (Span(37, 43), [SENTENCE], ["Nobody"], True),  # a supporting sentence without an answer
    (Span(0, 14), [SENTENCE], ["Nobody"], False),
    (Span(14, 44), [SENTENCE], ["Rome"], True),
    (SENTENCE, [Span(14, 44)], ["Rome"], True),  # white space at the ends does not count
    (Span(0, 14), [ROME, Span(4, 9)], ["Rome"], True),  # one of several
    (Span(0, 14), [Span(14, 43)], [], False),  # touches it at white space only
])  # fmt: skip
def test_right(span, gold, answers, expected):
    assert judge_spans(pair(answers, gold=gold), [span]) == [expected]


def test_evidence_accuracy_by_hand(stage, tmp_path):
    """Two of four training questions are right, one has no gold, one no second span; of two of dev one is right."""
    text_of = {row.id: row.text for row in tables.rows(stage["records"] / "passages.parquet", Passage)}

    def row(i: int, cut: list[Span], chosen: int) -> Evidence:
        return Evidence(f"q{i}", f"p{i}", "pseudo", "x", [ScoredSpan(*s, 1.0) for s in cut], [chosen], 0.5)

    def cut_at(i: int) -> list[Span]:
        first, last = 20, text_of[f"p{i}"].index(" Nobody")
        return [Span(0, first), Span(first + 1, last), Span(last + 1, len(text_of[f"p{i}"]))]

    rows = [row(i, cut_at(i), c) for i, c in ((0, 1), (1, 1), (2, 1))] + [row(3, [Span(0, len(text_of["p3"]))], 0)]
    rows += [row(4, cut_at(4), 1), row(5, cut_at(5), 0)]
    old = list(tables.rows(stage["positives"] / "positives.parquet", Positive))
    positives = [p._replace(gold=None) if p.question_id == "q2" else p for p in old]
    tables.write(stage["positives"] / "positives.parquet", Positive, positives)
    tables.write(stage["out"], Evidence, rows)
    places = {"records": stage["records"], "positives": stage["positives"], "evidence": stage["out"]}
    write_distractors(CUT, **places, out=tmp_path / "distractors")
    out = tmp_path / "metrics.json"
    assert evaluate_evidence(SEPARATE, **places, distractors=tmp_path / "distractors", out=out) == 4
    report = json.loads(out.read_text())
    train, dev = report["toy/train"]["pseudo"], report["toy/dev"]["pseudo"]
    assert (train["n"], train["accuracy"], train["without_gold"], train["one_span"]) == (2, 1.0, 1, 1)
    assert (dev["n"], dev["accuracy"]) == (2, 0.5)
    assert dev["accuracy_low"] == pytest.approx(0.094531, abs=1e-6)  # Wilson, 1 of 2
    assert dev["accuracy_high"] == pytest.approx(0.905469, abs=1e-6)
    lengths = [[s.end - s.start for s in cut_at(i)] for i in (4, 5)]
    assert dev["chance"] == pytest.approx(np.mean([n[1] / sum(n) for n in lengths]), abs=1e-6)
    assert dev["chance_uniform"] == pytest.approx(1 / 3, abs=1e-6)
    share = np.mean([lengths[0][1] / len(text_of["p4"]), lengths[1][0] / len(text_of["p5"])])
    assert dev["share_of_passage"] == pytest.approx(share, abs=1e-6)
    assert report["toy/train"]["distractors"]["pseudo"]["cut"] == {"pairs": 4, "kept": 3, "dropped": {"little_left": 1}}


@pytest.mark.parametrize(("positive", "expected"), [("each", ["p1", "p5", "p0"]), ("first", ["p1", "p0"])])
def test_of_several_positives_the_first_or_each_is_annotated(stage, tmp_path, positive, expected):
    """q0 has two, neither in the order of the passages; what comes after takes the same pairs."""
    gold = [Span(0, 8)]
    rows = [Positive(*pair, "given", gold) for pair in (("q0", "p1"), ("q0", "p5"), ("q1", "p0"))]
    tables.write(stage["positives"] / "positives.parquet", Positive, rows)
    settings = EVIDENCE.model_copy(update={"positive": positive})
    of_train = Sets(train=["toy/train"], evaluate=[], annotator=[])
    assert find_evidence(settings, of_train, HARDWARE, **stage) == len(expected) * len(EVIDENCE.strategies)
    annotated = [row.passage_id for row in tables.rows(stage["out"], Evidence) if row.strategy == "gold"]
    assert annotated == expected
    places = {"records": stage["records"], "positives": stage["positives"], "evidence": stage["out"]}
    write_distractors(CUT, **places, out=tmp_path / "distractors")
    cut = list(tables.rows(tmp_path / "distractors" / "distractors.parquet", Distractor))
    assert [row.passage_id for row in cut if row.strategy == "gold"] == expected
    out = tmp_path / "m.json"
    assert evaluate_evidence(of_train, **places, distractors=tmp_path / "distractors", out=out) == len(expected)


def test_chance_is_that_of_as_many_spans_as_were_chosen():
    """One right span of three, 10 of 40 characters."""
    text = "Nobody is x. In Rome. Nobody is here now."
    spans = [ScoredSpan(0, 12, None), ScoredSpan(13, 21, None), ScoredSpan(22, 41, None)]
    example = pair(text=text, gold=[Span(16, 20)], sentences=None)
    for chosen, chance, uniform in (([1], 8 / 39, 1 / 3), ([0, 1], 1 - (31 / 39) ** 2, 2 / 3), ([0, 1, 2], None, 1)):
        measures = measure_pair(example, Evidence("q", "p", "pseudo", "Rome", spans, chosen, None))
        assert (measures.right, measures.chance_uniform) == (True, pytest.approx(uniform))
        assert chance is None or measures.chance == pytest.approx(chance)
