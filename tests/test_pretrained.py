"""A model folder loads whole or not at all: nothing random, nothing left out, no empty vocabulary."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer, BertForMaskedLM

from eadpr.supervision import qa_model, small_t5
from eadpr.supervision.config import Recipe
from eadpr.training.bert import Bert
from eadpr.training.pretrained import load_whole, save_whole
from tests.supervision_toy import RECIPE


@pytest.fixture
def bert(toy, tmp_path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(toy / "base" / "passage_encoder", tmp_path / "bert"))


@pytest.fixture
def t5(tmp_path) -> Path:
    recipe = Recipe(**RECIPE)
    tokenizer = small_t5.train_tokenizer(["Ada liked tea."] * 4, vocabulary=recipe.vocabulary)
    save_whole(tmp_path / "t5", small_t5.new_model(recipe, vocabulary=len(tokenizer)), tokenizer)
    return tmp_path / "t5"


def refused(folder: Path, kind="AutoModel") -> str:
    with pytest.raises(ValueError, match=r"^base\.model '") as caught:
        load_whole(str(folder), kind, setting="base.model")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def configured(folder: Path, file: str = "config.json", **changes) -> None:
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def reweighted(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


NORM = "embeddings.LayerNorm.bias"


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda bert: configured(bert, num_hidden_layers=2), r"less weights .* encoder\.layer\.1\..* \(16 in all\)"),
    (lambda bert: configured(bert, model_type="distilbert", architectures=None), "less weights"),
    (lambda bert: configured(bert, model_type="roberta"), "weights of BertModel, but model_type roberta"),
    (lambda bert: configured(bert, attn_implementation="kernels-community/x"), "attn_implementation 'kernels"),
    (lambda bert: reweighted(bert, lambda state: state.update({NORM: state[NORM].int()})), f"{NORM} in .* of type I32"),
    (lambda bert: configured(bert, "tokenizer.json", post_processor=None), r"writes no \[CLS\] into a text"),
    (lambda bert: reweighted(bert, lambda state: state.pop(NORM)), f"less weights .* {NORM} "),
    (lambda bert: reweighted(bert, lambda state: state.update({NORM: torch.zeros(3)})), f"another shape .* {NORM} "),
    (lambda bert: reweighted(bert, lambda state: state.update({"encoder.layer.9.output.dense.bias": torch.zeros(1)})),
     r"more weights .* encoder\.layer\.9\.output\.dense\.bias "),
    (lambda bert: os.truncate(bert / "model.safetensors", 1000), r"cannot be loaded by AutoModel \(SafetensorError"),
    (lambda bert: transformers.ViTModel(transformers.ViTConfig(hidden_size=12)).save_pretrained(bert),
     "is a ViTModel, which reads no words"),
    (lambda bert: (bert / "tokenizer.json").write_text("{}"), r"its tokenizer cannot be loaded \("),
])  # fmt: skip
def test_a_spoilt_folder_is_refused(bert, spoil, message):
    spoil(bert)
    assert re.search(message, refused(bert))


def test_outputs_are_what_is_needed_whatever_the_config_says(bert):
    configured(bert, return_dict=False, output_attentions=True)
    model, _ = load_whole(str(bert), "AutoModel", setting="base.model")
    assert model(torch.tensor([[2, 3]])).last_hidden_state.shape == (1, 2, model.config.hidden_size)


def test_no_tokenizer_is_refused_not_made_empty(bert, t5):
    for folder, kind in ((bert, "AutoModel"), (t5, "AutoModelForSeq2SeqLM")):
        for path in folder.glob("tokenizer*"):
            path.unlink()
        assert "tokenizer" in refused(folder, kind)


def test_a_tokenizer_of_another_model_is_refused(bert):
    model = AutoModel.from_pretrained(bert)
    model.resize_token_embeddings(12)
    model.save_pretrained(bert)
    assert "tokens, but embeddings of 12" in refused(bert)


def test_a_revision_reaches_hugging_face(t5, monkeypatch):
    revisions = []

    def recorded(load):
        def from_pretrained(model, *, revision, **options):
            revisions.append((model, revision))
            return load(t5, **options)

        return lambda model, **options: (from_pretrained if model == "org/name" else load)(model, **options)

    for kind in (AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer):
        monkeypatch.setattr(kind, "from_pretrained", recorded(kind.from_pretrained))
    qa_model.load("org/name", revision="v2")
    qa_model.load("org/name")
    assert revisions == [("org/name", "v2")] * 3 + [("org/name", "main")] * 3


def test_heads_of_another_task_a_kept_buffer_and_no_pooler_are_taken(bert):
    """Published BERT folders hold these next to the encoder."""
    encoder = load_whole(str(bert), "AutoModel", setting="base.model")[0]
    published = BertForMaskedLM(encoder.config)
    published.bert.load_state_dict({k: v for k, v in encoder.state_dict().items() if "pooler" not in k})
    published.save_pretrained(bert)
    buffers = {"bert.embeddings.position_ids": torch.arange(4), "cls.attn.bias": torch.ones(4).bool()}  # a mask
    reweighted(bert, lambda state: state.update(buffers))
    loaded = load_whole(str(bert), "AutoModel", setting="base.model")[0]
    assert isinstance(loaded, Bert)
    assert torch.equal(loaded.embeddings.word_embeddings.weight, encoder.embeddings.word_embeddings.weight)
    reweighted(bert, lambda state: state.pop("bert.embeddings.LayerNorm.bias"))
    assert "less weights than its config.json says: embeddings.LayerNorm.bias" in refused(bert)
