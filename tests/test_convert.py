"""Published checkpoints: read without running code, strict about weights, and usable as what trainings start from."""

import collections
import json
import pickle
import sys
import types
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file

from eadpr.runtime import files
from eadpr.runtime.model_folders import model_files
from eadpr.training.base import make_base
from eadpr.training.convert import DPR, convert, convert_folder, read_weights
from eadpr.training.encoder import load, settings_of
from eadpr.training.pretrained import load_whole
from tests.small_collection import python
from tests.training_toy import AUTO, BASE, SETTINGS

pytestmark = pytest.mark.publishing

FIELDS = ["model_dict", "optimizer_dict", "scheduler_dict", "offset", "epoch", "encoder_params"]
SIDES = {"question": "question_model.", "passage": "ctx_model."}
CLS = SETTINGS.model_copy(update={"pooling": "cls"})


@pytest.fixture(scope="module")
def architecture(toy) -> str:
    return str(toy / "base" / "passage_encoder")


@pytest.fixture(scope="module")
def models(architecture) -> dict[str, transformers.BertModel]:
    torch.manual_seed(5)
    return {
        side: transformers.BertModel(transformers.AutoConfig.from_pretrained(architecture)).eval() for side in SIDES
    }


@pytest.fixture
def weights(models) -> dict[str, torch.Tensor]:
    """Weights as DPR saves them: with the pooler, and in older files with the positions."""
    state = {f"{SIDES[side]}{k}": v.clone() for side, model in models.items() for k, v in model.state_dict().items()}
    return state | {f"{prefix}embeddings.position_ids": torch.arange(512)[None] for prefix in SIDES.values()}


@pytest.fixture
def state_type(monkeypatch):
    """DPR's named tuple, importable where DPR has it, while a test writes files."""
    for name in ("dpr", "dpr.utils", "dpr.utils.model_utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    kind = collections.namedtuple("CheckpointState", FIELDS, module="dpr.utils.model_utils")
    sys.modules["dpr.utils.model_utils"].CheckpointState = kind
    return kind


def optimised() -> dict:
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(3)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


def same_vectors(folder: Path, models: dict[str, transformers.BertModel]) -> None:
    for side, model in models.items():
        encoder = load(folder, side)
        ids = torch.tensor(encoder.question_ids(["where was Alman born?"]))
        with torch.no_grad():
            expected = model(input_ids=ids).last_hidden_state[:, 0]
            torch.testing.assert_close(encoder(ids, torch.ones_like(ids)), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("zipped", [True, False])
def test_dprs_checkpoint(weights, models, architecture, state_type, tmp_path, monkeypatch, zipped):
    encoder_params = {"do_lower_case": True, "pretrained_model_cfg": "bert-base-uncased", "projection_dim": 0}
    state = state_type(weights, optimised(), {"last_epoch": 3, "base_lrs": [1e-5]}, 0, 39, encoder_params)
    torch.save(state, tmp_path / "dpr.cp", _use_new_zipfile_serialization=zipped)
    monkeypatch.delitem(sys.modules, "dpr.utils.model_utils")
    parameters = convert([tmp_path / "dpr.cp"], tmp_path / "model", architecture=architecture)
    same_vectors(tmp_path / "model", models)
    assert settings_of(tmp_path / "model") == DPR
    assert parameters == sum(p.numel() for m in models.values() for n, p in m.named_parameters() if "pooler" not in n)
    assert not list((tmp_path / "model").rglob("*.bin"))


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_state_dict(weights, models, architecture, tmp_path, wrapped):
    torch.save({"model_dict": weights} if wrapped else weights, tmp_path / "dpr.bin")
    convert([tmp_path / "dpr.bin"], tmp_path / "model", architecture=architecture)
    same_vectors(tmp_path / "model", models)


@pytest.mark.parametrize("suffix", ["bin", "safetensors"])
def test_the_two_files_of_hugging_face(models, architecture, tmp_path, suffix):
    shape = json.loads((Path(architecture) / "config.json").read_text())
    config = transformers.DPRConfig(**{k: v for k, v in shape.items() if k not in ("model_type", "architectures")})
    paths = []
    for side, kind in (("question", transformers.DPRQuestionEncoder), ("passage", transformers.DPRContextEncoder)):
        theirs = kind(config)
        inner = theirs.question_encoder if side == "question" else theirs.ctx_encoder
        inner.bert_model.load_state_dict(models[side].state_dict(), strict=False)
        paths.append(tmp_path / f"{side}.{suffix}")
        (torch.save if suffix == "bin" else save_file)(theirs.state_dict(), paths[-1])
    convert(paths, tmp_path / "model", architecture=architecture)
    same_vectors(tmp_path / "model", models)
    with pytest.raises(ValueError, match="no weights of a passage encoder"):
        convert(paths[:1], tmp_path / "other", architecture=architecture)


WORDS = "embeddings.word_embeddings.weight"


@pytest.mark.parametrize(("change", "message"), [
    ({"ctx_model.encode_proj.weight": torch.ones(2)}, 'Unexpected key.*"encode_proj.weight"'),
    ({"other.x": torch.ones(2), "other.y": torch.ones(2)}, "unknown weights other.x, other.y;"),
    ({f"ctx_model.{WORDS}": None}, f'Missing key.*"{WORDS}"'),
    ({f"question_model.{WORDS}": torch.ones(9, 32)}, rf"size mismatch for {WORDS}.*\[9, 32\]"),
])  # fmt: skip
def test_other_weights_are_named(weights, architecture, tmp_path, change, message):
    torch.save({k: v for k, v in (weights | change).items() if v is not None}, tmp_path / "dpr.bin")
    with pytest.raises(ValueError, match=rf"dpr\.bin: .*{message}"):
        convert([tmp_path / "dpr.bin"], tmp_path / "model", architecture=architecture)
    assert not (tmp_path / "model").exists()


class Harmful:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_checkpoint_is_refused_and_not_run(weights, state_type, tmp_path, zipped):
    state = state_type(weights, {}, {}, 0, 0, Harmful(tmp_path / "ran"))
    torch.save(state, tmp_path / "dpr.cp", _use_new_zipfile_serialization=zipped)
    (tmp_path / "plain.cp").write_bytes(pickle.dumps(Harmful(tmp_path / "ran"), protocol=2))
    with pytest.raises(ValueError, match=r"dpr\.cp is not .*: [\w.]*open could run code"):
        read_weights(tmp_path / "dpr.cp")
    with pytest.raises(ValueError, match=r"plain\.cp"):
        read_weights(tmp_path / "plain.cp")
    assert not (tmp_path / "ran").exists()


def test_what_is_no_checkpoint_is_refused(state_type, tmp_path):
    for path in (tmp_path / "html.cp", tmp_path / "html.safetensors"):
        path.write_bytes(b"<html>")
        with pytest.raises(ValueError, match=f"{path.name} is not a checkpoint"):
            read_weights(path)
    for value in ([1, 2], {"question_model.x": 1}, {1: torch.ones(2)}, state_type(None, *[0] * 5)):
        torch.save(value, tmp_path / "values.cp")
        with pytest.raises(ValueError, match=r"values\.cp holds no weights by name"):
            read_weights(tmp_path / "values.cp")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_weights(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"is a folder; name the weights in it, as .*pytorch_model\.bin"):
        read_weights(tmp_path)


def test_weights_in_two_files_and_links_to_elsewhere_but_in_the_hubs_cache_are_refused(tmp_path):
    (tmp_path / "blobs").mkdir()
    folder = tmp_path / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (tmp_path / "blobs" / "1").write_text('{"model_type": "bert"}')
    (folder / "config.json").symlink_to("../../blobs/1")
    torch.save({"a": torch.ones(2), "b": torch.ones(3, 2).T}, folder / "pytorch_model.bin")  # with strides
    assert convert_folder(folder, tmp_path / "whole") == 8
    (folder / "vocab.txt").symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match=r"vocab\.txt is a link to a file outside"):
        convert_folder(folder, tmp_path / "linked")
    torch.save({"a": torch.zeros(2)}, folder / "pytorch_model-1.bin")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin holds a, as another file does"):
        convert_folder(folder, tmp_path / "twice")


def test_a_base_takes_both_sides_of_a_folder(weights, models, architecture, toy, tmp_path):
    torch.save(weights, tmp_path / "dpr.bin")
    convert([tmp_path / "dpr.bin"], tmp_path / "model", architecture=architecture)
    folder, passages = str(tmp_path / "model"), toy / "records" / "passages.parquet"
    base, pins = BASE.model_copy(update={"model": folder}), model_files(folder)
    assert {"encoder.json", "question_encoder/model.safetensors", "passage_encoder/tokenizer.json"} <= set(pins.sha256)
    assert not any("sentence" in name and "/" not in name for name in pins.sha256)
    make_base(passages, tmp_path / "base", base=base, settings=CLS, expected=pins)
    same_vectors(tmp_path / "base", models)
    assert settings_of(tmp_path / "base") == CLS
    make_base(passages, tmp_path / "auto", base=base, settings=AUTO, expected=pins)
    assert settings_of(tmp_path / "auto") == DPR  # what the folder says
    make_base(passages, tmp_path / "same", base=base, settings=CLS.model_copy(update={"shared": True}), expected=pins)
    assert files.tree_sha256(tmp_path / "same") == files.tree_sha256(tmp_path / "base")
    with (tmp_path / "model/question_encoder/model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match=r"model: question_encoder/model\.safetensors changed"):
        make_base(passages, tmp_path / "other", base=base, settings=CLS, expected=pins)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_folder_with_pickled_weights_is_loaded_once_they_are_safetensors(architecture, tmp_path, parts):
    """A T5, whose embeddings are one tensor under three names."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(architecture)
    shape = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=len(tokenizer), **shape))
    weights = model.state_dict()
    model.config.save_pretrained(tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    for part in range(parts):
        name = f"pytorch_model-{part + 1:05d}-of-00002.bin" if parts > 1 else "pytorch_model.bin"
        torch.save(dict(list(weights.items())[part::parts]), tmp_path / "t5" / name)
    with pytest.raises(ValueError, match=r"eadpr convert"):
        load_whole(str(tmp_path / "t5"), "AutoModelForSeq2SeqLM", setting="annotator.model")
    assert convert_folder(tmp_path / "t5", tmp_path / "new") == sum(value.numel() for value in weights.values())
    again, _ = load_whole(str(tmp_path / "new"), "AutoModelForSeq2SeqLM", setting="annotator.model")
    assert all(torch.equal(value, weights[key]) for key, value in again.state_dict().items())
    with pytest.raises(ValueError, match="new exists"):
        convert_folder(tmp_path / "t5", tmp_path / "new")


def test_command(weights, architecture, tmp_path):
    torch.save(weights, tmp_path / "dpr.bin")
    paths = ("--out", tmp_path / "model", "--architecture", architecture)
    done = python("-m", "stages.convert", tmp_path / "dpr.bin", *paths, cache=tmp_path / "cache")
    assert done.stdout.startswith("convert: two encoders of together "), done.stderr
