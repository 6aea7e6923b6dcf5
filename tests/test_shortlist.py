"""Evidence by a shortlist: cheap nlls against the decoder run on each view alone, and what exact ones then decide."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from eadpr.storage import tables
from eadpr.storage.records import Evidence, Span
from eadpr.supervision import answer_nll, qa_model, shortlist, small_t5
from eadpr.supervision.annotator_manifest import Manifest, Model, Prompt, write_manifest
from eadpr.supervision.config import Recipe
from eadpr.supervision.evidence import Annotate, find_evidence
from eadpr.supervision.shortlist import Hidden, hidden_nlls, near
from tests.supervision_toy import EVIDENCE, HARDWARE, RECIPE, SEPARATE, write_collection
from tests.test_evidence import PROMPT, TEXT, pair

MANIFEST = Manifest("build", PROMPT, [Model("m", [])], {})
WORDS = TEXT.lower().split()


@pytest.fixture(scope="module")
def tiny():
    """A random T5 of two layers, whose answers differ more than an untrained one's, and a byte-pair tokenizer."""
    tokenizer = small_t5.train_tokenizer([TEXT.lower()] * 3, vocabulary=512)
    torch.manual_seed(0)
    model = small_t5.new_model(Recipe(**RECIPE | {"layers": 2}), vocabulary=len(tokenizer)).eval()
    model.shared.weight.data.mul_(3)
    return model, tokenizer


def drawn(count: int) -> list[Hidden]:
    """Inputs of many lengths with 0 to 5 spans, each some words in a row, and targets of many lengths."""
    rng, found = np.random.default_rng(0), []
    for _ in range(count):
        source = " ".join(rng.choice(WORDS, rng.integers(2, 40)))
        ends = np.sort(rng.integers(0, len(source), (rng.integers(0, 6), 2)))
        spans = [Span(int(start), int(end) + 1) for start, end in ends]
        found.append(Hidden(source, spans, " ".join(rng.choice(WORDS, rng.integers(1, 5)))))
    return found


def alone(model, tokenizer, source: str, span: Span | None, target: str) -> float:
    """Hugging Face's loss, with the tokens of a span masked for the decoder and not for the encoder."""
    ids = tokenizer(source, truncation=True, max_length=64, return_tensors="pt", return_offsets_mapping=True)
    seen = [span is None or end <= span.start or span.end <= start for start, end in ids.offset_mapping[0].tolist()]
    with torch.no_grad():
        states = model.encoder(input_ids=ids.input_ids)
        labels = tokenizer(target, return_tensors="pt").input_ids
        return model(encoder_outputs=states, attention_mask=torch.tensor([seen]).long(), labels=labels).loss.item()


@pytest.mark.parametrize("views", [1, 20, 128])
@pytest.mark.parametrize("budget", [1, 200, 8_192])
def test_pooled_views_equal_the_decoder_run_on_each_alone(tiny, monkeypatch, budget, views):
    model, tokenizer = tiny
    asked = drawn(8)
    expected = [[alone(*tiny, one.source, span, one.target) for span in [*one.spans, None]] for one in asked]
    assert max(np.ptp(nlls) for nlls in expected) > 0.1, "what is hidden must matter, or this test shows nothing"
    monkeypatch.setitem(answer_nll.BATCH_TOKENS, "cpu", budget)
    monkeypatch.setattr(shortlist, "TOKENS", views)
    for nlls, wanted in zip(hidden_nlls(model, tokenizer, asked, input_tokens=64), expected, strict=True):
        assert nlls == pytest.approx(wanted, abs=1e-4)


def test_a_target_without_a_token_and_a_model_without_relative_positions_are_told(tiny):
    model, tokenizer = tiny
    bare = Mock(wraps=tokenizer, side_effect=lambda texts, **how: tokenizer(texts, **how, add_special_tokens=False))
    with pytest.raises(ValueError, match="the answer '' has no token"):
        hidden_nlls(model, bare, [Hidden("ann", [], "")], input_tokens=64)
    bart = BartForConditionalGeneration(BartConfig(
        vocab_size=300, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1,
        decoder_attention_heads=1, encoder_ffn_dim=8, decoder_ffn_dim=8,
    ))  # fmt: skip
    with pytest.raises(ValueError, match=r"a T5's relative positions, but this one is a bart; set evidence\.shortlist"):
        hidden_nlls(bart, tokenizer, drawn(1), input_tokens=64)


@pytest.mark.parametrize(("within", "expected"), [(0, [1, 3]), (0.5, [1, 2, 3]), (9, [0, 1, 2, 3])])
def test_near(within, expected):
    assert near(np.array([0.5, 3.0, 2.5, 3.0]), within) == expected


GLANCED = np.array([0.5, 3.0, 2.5, 0.25, 0.125], dtype=np.float32)
EXACT = np.array([9.0, 2.0, 4.0, 9.0, 9.0], dtype=np.float32)


@pytest.mark.parametrize(("within", "chosen", "nlls"), [
    (0.25, 1, [None, None, None, None]),  # one span alone is near: nothing is left to decide
    (0.5, 2, [None, 2.0, 4.0, None]),
    (2.5, 0, [9.0, 2.0, 4.0, None]),
])  # fmt: skip
def test_exact_nlls_decide_among_the_spans_near_the_highest(within, chosen, nlls):
    asked = []

    def score(model, requests):
        asked.extend(requests)
        return EXACT[[every.index(request) for request in requests]]

    settings = EVIDENCE.model_copy(update={"strategies": ["pseudo"], "shortlist": within})
    annotate = Annotate(settings, MANIFEST, score, lambda model, hidden: [GLANCED] * len(hidden))
    every = annotate.requests(pair())
    (row,) = annotate([pair()])
    assert row.chosen == [chosen]
    assert [span.nll for span in row.spans] == nlls
    assert row.nll_full == 0.125
    assert asked == [every[i] for i, nll in enumerate(nlls) if nll is not None]


@pytest.mark.parametrize(
    "form", ["{question} \\n {context}", "Context: {context} Q: {question}?", "{context}{question}"]
)
@pytest.mark.parametrize("title", ["Ann", "", "İzmir {context}"])
def test_spans_are_found_in_the_input(form, title):
    text = "İ was ANN. She {question} was born, in Rome. Nobody knows."
    found = pair(text=text)
    found = found._replace(
        passage=found.passage._replace(title=title), question=found.question._replace(question="Where is {context}?")
    )
    settings = EVIDENCE.model_copy(update={"shortlist": 0.0})
    hidden = []
    annotate = Annotate(
        settings, MANIFEST._replace(prompt=Prompt(form, lowercase=True)), lambda *_: np.zeros(0),
        lambda model, asked: hidden.extend(asked) or [GLANCED[1:]] * len(asked),
    )  # fmt: skip
    list(annotate([found]))
    (one,) = hidden
    assert [one.source[start:end] for start, end in one.spans] == [
        "İ was ANN.".lower(), "she {question} was born, in rome.", "nobody knows.",
    ]  # fmt: skip
    assert (one.source, one.target) == annotate.requests(found)[-1]


@pytest.fixture
def stage(tmp_path, tiny):
    records, positives = write_collection(tmp_path)
    qa_model.save(tmp_path / "annotator" / "m", *tiny)
    write_manifest(tmp_path / "annotator", MANIFEST)
    return {"records": records, "positives": positives, "annotator_folder": tmp_path / "annotator"}


def test_with_every_span_on_the_shortlist_the_stage_finds_what_it_finds_without(stage, tmp_path):
    rows = []
    for shortlist_ in (None, 1e9):
        settings = EVIDENCE.model_copy(update={"shortlist": shortlist_})
        find_evidence(settings, SEPARATE, HARDWARE, **stage, out=tmp_path / "evidence.parquet")
        rows.append(list(tables.rows(tmp_path / "evidence.parquet", Evidence)))
    exact, listed = ([row for row in of_run if row.strategy == "pseudo"] for of_run in rows)
    assert len(exact) == 6
    for one, other in zip(exact, listed, strict=True):
        assert other._replace(nll_full=None, spans=[]) == one._replace(nll_full=None, spans=[])
        assert other.nll_full == pytest.approx(one.nll_full, abs=1e-4)
        assert [span.nll for span in other.spans] == pytest.approx([span.nll for span in one.spans], abs=1e-4)
