"""Relevance by a reranker and by an encoder's tokens, and the evidence that it chooses without an answer."""

import json

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from eadpr.library.scorers import encoder_scorer, load_encoders
from eadpr.runtime.model_folders import model_files
from eadpr.storage import tables
from eadpr.storage.records import Evidence, Passage, Question
from eadpr.supervision.annotator import build_annotator
from eadpr.supervision.answer_nll import make_scorer
from eadpr.supervision.evidence import Annotate, find_evidence
from eadpr.supervision.manifest import Manifest, Model, Prompt
from eadpr.supervision.pairs import Pair
from eadpr.training import relevance
from eadpr.training.config import AUTO
from tests.small_collection import write_model
from tests.supervision_toy import EVIDENCE, HARDWARE, SEPARATE, annotator_settings, write_collection

TEXT = "Paris was born. W1 w2 w3 w4 london. Where was ada?"
PAIRS = [
    ("where was ada", "w1", "ada was born . london"),
    ("where was ada", "", "w3"),
    ("w5 w6 w7 capital", "paris", "w5 w8 capital w9 w10 w11 . 1912 w12"),
]
PAIR = Pair(Question("q", "Where?", [], "string", None, None, None, None), Passage("p", "Ada", TEXT, None), None)
PSEUDO = EVIDENCE.model_copy(update={"strategies": ["pseudo"]})


@pytest.fixture
def encoder(tmp_path) -> str:
    return str(write_model(tmp_path / "arm") / "passage_encoder")


def write_reranker(folder, encoder: str, labels: int = 1) -> str:
    """A cross-encoder with random weights and the encoder's tokenizer, which also writes token types."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(encoder)
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    shape |= {"vocab_size": len(tokenizer), "max_position_embeddings": 16, "num_labels": labels}
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig(**shape, initializer_range=0.5)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_reranker_scores_pairs_together_as_alone(tmp_path, encoder):
    reranker = model, tokenizer = relevance.load(write_reranker(tmp_path / "reranker", encoder))
    expected = []
    for question, title, text in PAIRS:
        inputs = tokenizer(question, f"{title} {text}".strip(), truncation=True, max_length=16, return_tensors="pt")
        expected.append(model(**inputs).logits.item())
    assert len(set(expected)) == 3
    assert relevance.score(reranker, PAIRS, input_tokens=512) == pytest.approx(expected, abs=1e-5)
    shorter = relevance.score(reranker, PAIRS, input_tokens=9)
    assert (np.abs(shorter - expected) > 1e-3).tolist() == [True, False, True]


def test_an_encoder_scores_by_the_late_interaction_of_its_tokens(encoder):
    scorer = encoder_scorer(load_encoders(encoder, AUTO.model_copy(update={"unit": "token"})), None)
    scores = relevance.score(relevance.load(encoder), PAIRS, input_tokens=512)
    assert scores == pytest.approx(scorer.score(*map(list, zip(*PAIRS, strict=True))), abs=1e-5)


def test_a_model_with_several_labels_is_no_reranker(tmp_path, encoder):
    with pytest.raises(ValueError, match=r"annotator.model '.*three' has 3 labels; a reranker has one"):
        relevance.load(write_reranker(tmp_path / "three", encoder, labels=3))


@pytest.mark.parametrize(("kind", "texts", "scores", "chosen", "stored"), [
    ("removal", ["W1 w2 w3 w4 london. Where was ada?", "Paris was born. Where was ada?",
        "Paris was born. W1 w2 w3 w4 london.", TEXT], [0.5, 0.25, 0.75, 1.0], 1, [-0.5, -0.25, -0.75, -1.0]),
    ("match", ["Paris was born.", "W1 w2 w3 w4 london.", "Where was ada?", TEXT],
        [0.5, 0.25, 0.75, 1.0], 2, [0.5, 0.25, 0.75, 1.0]),
])  # fmt: skip
def test_what_matters_most_is_the_evidence_without_any_answer(kind, texts, scores, chosen, stored, monkeypatch):
    scored_pairs = []

    def score(model, pairs, *, input_tokens):
        scored_pairs.extend(pairs)
        return np.array(scores, np.float32)

    monkeypatch.setattr(relevance, "score", score)
    manifest = Manifest("given", Prompt("{question} {context}", True), [Model("m", [])], {}, None, kind)
    annotate = Annotate(PSEUDO, manifest, make_scorer(lambda index: "m", manifest, PSEUDO, HARDWARE))
    (row,) = annotate([PAIR])
    assert scored_pairs == [("Where?", "Ada", text) for text in texts]
    assert (row.chosen, row.target) == ([chosen], "")
    assert [*(span.nll for span in row.spans), row.nll_full] == stored


def test_without_a_model_nothing_is_chosen():
    annotate = Annotate(PSEUDO, Manifest("none", Prompt("{question} {context}", True), [], {}), None)
    (row,) = annotate([PAIR])
    assert (len(row.spans), row.chosen) == (3, [])


def test_the_stages_find_evidence_with_an_encoder(tmp_path, encoder):
    records, positives = write_collection(tmp_path)
    questions = [row._replace(answers=[]) for row in tables.rows(records / "questions.parquet", Question)]
    tables.write(records / "questions.parquet", Question, questions)
    settings = annotator_settings().model_copy(update={"kind": "relevance", "model": encoder})
    out = tmp_path / "annotator"
    folders = {"records": records, "positives": positives}
    build_annotator(settings, SEPARATE, HARDWARE, **folders, out=out, model_files=model_files(encoder))
    assert json.loads((out / "annotator.json").read_text())["relevance"] == "match"
    evidence = tmp_path / "evidence.parquet"
    assert find_evidence(PSEUDO, SEPARATE, HARDWARE, **folders, annotator_folder=out, out=evidence) == 6
    model = relevance.load(encoder)
    for i, row in enumerate(tables.rows(evidence, Evidence)):
        text = next(p for p in tables.rows(records / "passages.parquet", Passage) if p.id == f"p{i}").text
        sentences = [text[span.start : span.end] for span in row.spans]
        pairs = [(f"Where was Person {i} born?", f"Person {i}", sentence) for sentence in sentences]
        expected = relevance.score(model, pairs, input_tokens=128)
        assert [span.nll for span in row.spans] == pytest.approx(expected.tolist(), abs=1e-5)
        assert row.chosen == [int(np.argmax(expected))]
