"""Input forms, pooling, and that what is saved loads elsewhere with the same scores."""

import json
import os
import subprocess
import sys

import pytest
import torch
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from eadpr.runtime import files
from eadpr.runtime.model_folders import model_files
from eadpr.storage import tables
from eadpr.storage.records import Passage
from eadpr.training.base import make_base, sampled_texts
from eadpr.training.encoder import TextEncoder, load, load_pair, pretrained, save
from eadpr.training.padding import pad
from eadpr.training.pretrained import position_limit
from eadpr.training.projection import Projection
from eadpr.training.self_description import DenseShape
from tests.repository import ROOT
from tests.training_toy import BASE, SETTINGS

TITLES = ["Alman", "", "Bevik"]
TEXTS = ["Alman was born in Aron.", "Bevik wrote letters.", "Bevik liked quiet rooms and " + "long walks " * 40]


@pytest.fixture(scope="module")
def passage(toy):
    return load(toy / "base", "passage")


def test_passage_form(passage):
    assert (passage.passage_ids([], []), passage.question_ids([])) == ([], [])
    titled, untitled, long = passage.passage_ids(TITLES, TEXTS)
    tokens = passage.tokenizer
    cls, sep = tokens.cls_token_id, tokens.sep_token_id

    def plain(text):
        return tokens(text, add_special_tokens=False)["input_ids"]

    assert titled == [cls, *plain("Alman"), sep, *plain(TEXTS[0]), sep]
    assert untitled == [cls, *plain(TEXTS[1]), sep]
    assert len(long) == SETTINGS.passage_tokens
    assert long[-1] == sep
    assert long[: len(plain("Bevik")) + 2] == [cls, *plain("Bevik"), sep]


def test_question_form(toy):
    question = load(toy / "base", "question")
    (straight, curly) = question.question_ids(["what was Alman's town?", "what was Alman’s town?"])
    assert (straight, straight[0]) == (curly, question.tokenizer.cls_token_id)
    assert straight[-1] == question.tokenizer.sep_token_id
    assert len(question.question_ids(["where " * 50])[0]) == SETTINGS.question_tokens


def test_pad():
    ids, mask = pad([[5, 6, 7], [8]], 9)
    assert (ids.tolist(), mask.tolist()) == ([[5, 6, 7], [8, 9, 9]], [[1, 1, 1], [1, 0, 0]])
    assert ids.dtype == mask.dtype == torch.int64


def projection_of(dim: int) -> Projection:
    """Return a projection with no weight that it would have from scratch."""
    projection = Projection([DenseShape(in_features=dim, out_features=dim)])
    generator = torch.Generator().manual_seed(5)
    for weight in projection.parameters():
        torch.nn.init.normal_(weight, generator=generator)
    return projection


def test_a_projection_gives_vectors_that_are_not_rounded_to_bfloat16():
    projection = projection_of(8)
    states = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        vectors = projection(states)
    assert vectors.dtype == torch.float32
    assert not torch.equal(vectors, vectors.bfloat16().float())


def test_the_base_is_the_same_in_another_process_without_the_offline_switch(toy, tmp_path):
    """Made, loaded, used and saved again; Hugging Face would note in the tokenizer's file whether it was offline."""
    code = (
        "import sys; from pathlib import Path; from tests.training_toy import BASE, SETTINGS\n"
        "from eadpr.training.base import make_base\n"
        "from eadpr.training.encoder import load_pair, save, settings_of\n"
        "passages, base, again = map(Path, sys.argv[1:]); again.mkdir()\n"
        "make_base(passages, base, base=BASE, settings=SETTINGS)\n"
        "encoders = load_pair(base, settings_of(base)); encoders[1].passage_ids(['a'], ['b'])\n"
        "save(again, *encoders)"
    )
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1"}
    del env["HF_HUB_OFFLINE"]
    paths = [toy / "records" / "passages.parquet", tmp_path / "base", tmp_path / "again"]
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], env=env, check=True, cwd=ROOT)
    for path in paths[1:]:
        assert files.tree_sha256(path) == files.tree_sha256(toy / "base")


def test_a_shared_encoder_is_one_object_and_needs_equal_sides(toy, tmp_path):
    shared = SETTINGS.model_copy(update={"shared": True})
    question, passage = load_pair(toy / "base", shared)
    assert question is passage
    question, passage = load_pair(toy / "base", SETTINGS)
    assert question is not passage
    with torch.no_grad():
        next(question.parameters()).add_(1)
    save(tmp_path, question, passage)
    with pytest.raises(ValueError, match=r"the encoders of both sides in .* differ"):
        load_pair(tmp_path, shared)


def test_remote_code_is_not_run(toy, tmp_path):
    """A folder whose config points to its own Python file must not have it run."""
    encoder = load(toy / "base", "passage")
    encoder.model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Own: pass\n")
    with pytest.raises(ValueError, match="contains custom code"):
        pretrained(str(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_inputs_longer_than_the_models_positions_are_refused(passage):
    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    bert = BertModel(BertConfig(vocab_size=50, max_position_embeddings=40, **tiny))
    roberta = RobertaModel(RobertaConfig(vocab_size=50, max_position_embeddings=42, pad_token_id=1, **tiny))
    assert (position_limit(bert), position_limit(roberta)) == (40, 40)
    with pytest.raises(ValueError, match=r"encoder\.passage_tokens must not exceed the 40 positions .* found 48"):
        TextEncoder(bert, passage.tokenizer, SETTINGS)


def test_a_pooler_is_dropped(passage):
    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertModel(BertConfig(vocab_size=len(passage.tokenizer), **tiny))
    encoder = TextEncoder(model, passage.tokenizer, SETTINGS)
    assert not any("pooler" in name for name, _ in encoder.named_parameters())
    encoder(*pad([[1, 2, 3]], 0)).sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())


def test_a_pretrained_encoder_by_path_becomes_the_base(toy, tmp_path):
    folder = str(toy / "base" / "passage_encoder")
    base = BASE.model_copy(update={"model": folder})
    passages = toy / "records" / "passages.parquet"
    make_base(passages, tmp_path / "base", base=base, settings=SETTINGS, expected=model_files(folder))
    assert files.tree_sha256(tmp_path / "base") == files.tree_sha256(toy / "base")
    with pytest.raises(
        ValueError, match=r"passage_encoder: 1_Pooling/config\.json, config\.json, .* changed.* `dvc repro -f configs`"
    ):
        make_base(passages, tmp_path / "other", base=base, settings=SETTINGS)
    assert not (tmp_path / "other").exists()


def test_tokenizer_knows_every_character_and_lower_cases(passage):
    tokenizer = passage.tokenizer
    assert tokenizer.unk_token_id not in tokenizer("Zoë 東京 ☃")["input_ids"]
    assert tokenizer("ABC")["input_ids"] == tokenizer("abc")["input_ids"]
    assert tokenizer.pad_token_id == 0


def test_sampled_texts_are_evenly_spaced(tmp_path):
    path = tmp_path / "passages.parquet"
    tables.write(path, Passage, [Passage(str(i), f"t{i}", "x", None) for i in range(10)])
    assert list(sampled_texts(path, 100)) == [f"t{i} x" for i in range(10)]
    assert list(sampled_texts(path, 4)) == ["t0 x", "t3 x", "t6 x", "t9 x"]
