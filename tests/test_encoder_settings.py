"""A base takes a model as its makers meant it: the vectors of sentence-transformers, from its own files."""

import json
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
from huggingface_hub.errors import EntryNotFoundError
from tokenizers import normalizers
from transformers import AutoConfig, AutoModel

from eadpr.runtime.model_folders import model_files
from eadpr.search.encode import embed
from eadpr.settings.resolve import configs
from eadpr.settings.resolve import load as load_settings
from eadpr.settings.yaml import SettingError
from eadpr.training.base import byte_level_bpe, make_base
from eadpr.training.config import Prompts, ResolvedSettings
from eadpr.training.encoder import load, load_pretrained, pool, settings_of
from eadpr.training.self_description import read_description
from eadpr.two_hops.hops import second_ids
from tests.repository import ROOT
from tests.training_toy import AUTO, BASE

TEXTS = ["Alman was born in Aron.", "bevik wrote Letters", "Bevik’s liked quiet rooms and " + "long walks " * 40]
TITLES = ["Alman", "", "Bevik"]
JOINED = ["Alman Alman was born in Aron.", TEXTS[1], f"Bevik {TEXTS[2]}"]
QUESTIONS = ["Where was Alman born?", "who wrote Bevik’s letters?", "long walks " * 40]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
PROMPTS = {"query": "query: ", "document": "passage: "}
DECODER = SIZES | {"num_key_value_heads": 1, "head_dim": 8, "eos_token_id": 1, "bos_token_id": 2} | {
    "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip

# Model type, its configuration, form of one text, of two, and the special tokens in the order of their ids.
MODELS = {
    "bert": ("bert", SIZES | {"max_position_embeddings": 40, "pad_token_id": 0}, "[CLS] $A [SEP]",
             "[CLS] $A [SEP] $B [SEP]", {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "unk": "[UNK]"}),
    "xlm-r": ("xlm-roberta", SIZES | {"max_position_embeddings": 34, "pad_token_id": 1}, "<s> $A </s>",
              "<s> $A </s> </s> $B </s>", {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>"}),
    "modernbert": ("modernbert", SIZES | {
        "max_position_embeddings": 64, "local_attention": 8, "pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2,
        "bos_token_id": 1, "eos_token_id": 2}, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]",
        {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "unk": "[UNK]"}),
    "qwen3": ("qwen3", DECODER, "$A <end>", "$A $B <end>",
              {"pad": "<pad>", "eos": "<end>", "bos": "<s>", "unk": "<unk>"}),
    "llama": ("llama", DECODER, "<s> $A <end>", "<s> $A <end> $B <end>",
              {"pad": "<pad>", "eos": "<end>", "bos": "<s>", "unk": "<unk>"}),
}  # fmt: skip


def write_plain(folder: Path, name: str, padding_side: str = "right") -> Path:
    """Write a small random model in Hugging Face's layout."""
    kind, config, single, pair, tokens = MODELS[name]
    texts, special = [*TEXTS, *QUESTIONS, "query: passage: "], {f"{key}_token": token for key, token in tokens.items()}
    options = {"normalizer": normalizers.NFC(), "single": single, "pair": pair}
    tokenizer = byte_level_bpe(texts, vocabulary=300, special=special, **options)
    tokenizer.padding_side = padding_side
    torch.manual_seed(4)
    model = AutoModel.from_config(AutoConfig.for_model(kind, **config, vocab_size=len(tokenizer)))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_model(folder: Path, name: str, *, pooling="mean", dense=(), normalise=True, side="right", **options) -> Path:
    """Write a model as sentence-transformers does: `dense` are sizes, with a tanh before the last."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules

    length = options.pop("max_seq_length", None)
    transformer = modules.Transformer(str(write_plain(folder, name, side)), max_seq_length=length)
    transformer.do_lower_case = options.pop("do_lower_case", False)
    layers = [transformer, modules.Pooling(16, pooling, include_prompt=options.pop("include_prompt", True))]
    for number, size in enumerate(dense):
        torch.manual_seed(number)
        activation = torch.nn.Tanh() if number + 1 < len(dense) else torch.nn.Identity()
        width = dense[number - 1] if number else 16
        layers.append(modules.Dense(width, size, bias=not number, activation_function=activation))
    layers += [modules.Normalize()] if normalise else []
    library.SentenceTransformer(modules=layers, device="cpu", **options).save(str(folder))
    return folder


def make(folder: Path, model: Path, settings=AUTO) -> Path:
    base = BASE.model_copy(update={"model": str(model)})
    make_base(folder, folder / "base", base=base, settings=settings, expected=model_files(str(model)))
    return folder / "base"


@pytest.mark.parametrize(("name", "options"), [
    ("bert", {"pooling": "cls"}),
    ("bert", {"prompts": PROMPTS, "max_seq_length": 24}),
    ("bert", {"normalise": False, "similarity_fn_name": "dot", "dense": (24, 8)}),
    ("bert", {"dense": (12,), "prompts": {"passage": "passage: "}}),
    ("xlm-r", {"prompts": PROMPTS, "max_seq_length": 32}),  # its positions: sentence-transformers alone fails on longer
    ("modernbert", {"pooling": "cls", "max_seq_length": 32}),
    ("qwen3", {"pooling": "lasttoken", "side": "left", "prompts": {"query": "Instruct: find it\nQuery:"}}),
    ("llama", {"pooling": "lasttoken"}),
    ("llama", {"pooling": "mean", "side": "left"}),
])  # fmt: skip
def test_a_base_has_the_vectors_of_sentence_transformers(tmp_path, name, options):
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(write_model(tmp_path / "model", name, **options)), device="cpu")
    passage_prompt = options.get("prompts", {}).get("passage", "")  # which `encode_document` looks for in vain
    theirs = model.encode_query(QUESTIONS), model.encode_document([passage_prompt + text for text in JOINED])
    base = make(tmp_path, tmp_path / "model")
    question, passage = load(base, "question"), load(base, "passage")
    ours = embed(question, question.question_ids(QUESTIONS)), embed(passage, passage.passage_ids(TITLES, TEXTS))
    assert ours[0].shape[1] == passage.dim == model.get_embedding_dimension()
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-5, rtol=0)
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-5, rtol=0)
    saved = [
        library.SentenceTransformer(str(base / f"{side}_encoder"), device="cpu") for side in ("question", "passage")
    ]
    np.testing.assert_allclose(saved[0].encode_query(QUESTIONS), theirs[0], atol=1e-5, rtol=0)
    np.testing.assert_allclose(saved[1].encode_document(JOINED), theirs[1], atol=1e-5, rtol=0)
    assert saved[0].similarity_fn_name == options.get("similarity_fn_name", "cosine")
    again = make(tmp_path / "again", base / "passage_encoder")
    assert settings_of(again) == settings_of(base)


def test_the_last_token_is_found_on_either_side_of_the_padding():
    states = torch.arange(8.0).view(2, 4, 1)
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1]])
    assert pool(states, mask, "last").tolist() == [[1.0], [7.0]]
    assert pool(states, mask, "mean").tolist() == [[0.5], [6.5]]


def test_what_a_model_does_not_say_is_as_dpr_has_it_and_what_is_asked_for_wins(tmp_path):
    silent = write_plain(tmp_path / "model", "bert")
    pair = ResolvedSettings(pooling="mean", shared=True, question_tokens=40, passage_tokens=40)
    assert settings_of(make(tmp_path, silent)) == pair
    changes = {"pooling": "cls", "similarity": "cosine", "title": "none", "question_tokens": 12}
    changes["prompts"] = Prompts(question="q: ", passage="p: ")
    base = make(tmp_path / "asked", silent, AUTO.model_copy(update=changes))
    assert settings_of(base) == pair.model_copy(update=changes)
    passage = load(base, "passage")
    assert passage.passage_ids(["Alman"], ["x"]) == [passage.tokenizer("p: x")["input_ids"]]
    titled = load(base, "passage", AUTO.model_copy(update={"title": "pair"}))
    assert titled.passage_ids(["Alman", ""], ["x", "y"]) == [
        passage.tokenizer("p: Alman", "x")["input_ids"], passage.tokenizer("p: y")["input_ids"]
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"encoder\.question_tokens must not exceed the 40 positions"):
        make(tmp_path / "long", silent, AUTO.model_copy(update={"question_tokens": 41}))
    changes["prompts"] = Prompts(question="long walks " * 6, passage="")
    with pytest.raises(ValueError, match=r"encoder\.prompts: 'long .* fills the 12 tokens of a question; shorten it"):
        make(tmp_path / "full", silent, AUTO.model_copy(update=changes))


def test_a_base_keeps_the_default_prompt_lower_case_and_lengths_by_side(tmp_path):
    model = write_model(tmp_path / "model", "bert", max_seq_length=24)
    change(model, "config_sentence_transformers.json", prompts={"all": "t: "}, default_prompt_name="all")
    change(model, "sentence_bert_config.json", do_lower_case=True, query_length=10, max_seq_length=20)
    settings = settings_of(make(tmp_path, model))
    assert settings.prompts == Prompts(question="t: ", passage="t: ")
    assert (settings.question_tokens, settings.passage_tokens) == (10, 20)
    passage = load(tmp_path / "base", "passage")
    assert passage.question_ids(["WHO"]) == [passage.tokenizer("t: who")["input_ids"]]
    assert json.loads((tmp_path / "base/passage_encoder/sentence_bert_config.json").read_text())["do_lower_case"]


def change(folder: Path, file: str, **values) -> None:
    config = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps(config | values))


def change_or_rename(folder: Path, file: str | None, values: dict) -> None:
    """Change the values of a file or, without one, rename files from old names to new ones."""
    if file is not None:
        change(folder, file, **values)
        return
    for old, new in values.items():
        (folder / old).rename(folder / new)


POOLING, DENSE, MODEL = "1_Pooling/config.json", "2_Dense/config.json", "config_sentence_transformers.json"
OLD = {"pooling_mode": None, "pooling_mode_mean_tokens": True}


@pytest.mark.parametrize(("file", "values", "message"), [
    (POOLING, {**OLD, "pooling_mode_cls_token": True}, "pools by mean_tokens and cls_token"),
    (POOLING, {**OLD, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}, "pools by max_tokens;"),
    (POOLING, {"include_prompt": False}, rf"{POOLING}: include_prompt is false"),
    (DENSE, {"activation_function": "os.system"}, rf"{DENSE}: activation_function: .* \(found 'os.system'\)"),
    (MODEL, {"truncate_dim": 4}, r"truncate_dim: .* \(found 4\)"),
    (None, {"2_Dense/model.safetensors": "2_Dense/pytorch_model.bin"}, r"2_Dense/model\.safetensors: is not there"),
    (None, {POOLING: "1_Pooling/lost.json"}, f"{POOLING}: is not there"),
])  # fmt: skip
def test_settings_that_cannot_be_followed_are_refused_by_name(tmp_path, file, values, message):
    model = write_model(tmp_path / "model", "bert", dense=(12,), prompts=PROMPTS)
    change_or_rename(model, file, values)
    with pytest.raises(ValueError, match=message) as error:
        make(tmp_path, model)
    assert str(model) in str(error.value)
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize(("edit", "message"), [
    (lambda modules: [*modules, {"path": "4", "type": "custom.Whiten"}], r"holds custom\.Whiten, which is no class"),
    (lambda modules: [*modules[:2], *modules[1:]], r"Pooling in 1_Pooling, \S*Pooling in 1_Pooling, \S*Dense"),
    (lambda modules: [{"path": ""}], r"modules\.json: 0\.type: Field required"),
])  # fmt: skip
def test_modules_that_are_not_known_are_refused_by_name(tmp_path, edit, message):
    model = write_model(tmp_path / "model", "bert", dense=(12,))
    (model / "modules.json").write_text(json.dumps(edit(json.loads((model / "modules.json").read_text()))))
    with pytest.raises(ValueError, match=message):
        read_description(str(model))


@pytest.mark.parametrize(("file", "values", "key"), [
    ("adapter_config.json", {"base_model_name_or_path": "org/other"}, "base.model"),
    (POOLING, {"pooling_mode": ["cls", "mean"]}, "base.model"),
    (POOLING, {"pooling_mode": "lasttoken"}, None),
    (POOLING, {"include_prompt": False}, "base.model"),
    (DENSE, {"out_features": 9}, "base.model"),
    (MODEL, {"similarity_fn_name": "euclidean"}, "base.model"),
    ("config.json", {"max_position_embeddings": 30}, "encoder.passage_tokens"),
    (None, {"model.safetensors": "pytorch_model.bin"}, "base.model"),
])  # fmt: skip
def test_a_folder_is_checked_with_the_settings_before_anything_runs(tmp_path, file, values, key):
    model = write_model(tmp_path / "model", "bert", dense=(12,))
    change_or_rename(model, file, values)
    changes = {"passage_tokens": 32, "prompts": {"question": "query: ", "passage": ""}}
    assert refused_key(model, changes) == key


@pytest.mark.parametrize(("form", "pooling", "changes", "key"), [
    ("$A", "lasttoken", {}, "encoder.pooling"),
    ("$A", "mean", {"pooling": "last"}, "encoder.pooling"),
    ("$A <end>", "mean", {"pooling": "last"}, None),
    ("$A <end>", "mean", {"title": "pair"}, "encoder.title"),
])  # fmt: skip
def test_last_needs_a_token_that_ends_a_text_and_pair_one_between(tmp_path, monkeypatch, form, pooling, changes, key):
    kind, config, _, _, tokens = MODELS["qwen3"]
    monkeypatch.setitem(MODELS, "qwen3", (kind, config, form, form.replace("$A", "$A $B"), tokens))
    assert refused_key(write_model(tmp_path / "model", "qwen3", pooling=pooling), changes) == key


def refused_key(model: Path, changes: dict) -> str | None:
    """Return the key that `configs` refuses where a base, two arms and two hops start from the model."""
    values = load_settings(ROOT / "params.yaml")
    values["collections"] = {"atlas": values["collections"]["atlas"]}
    values["base"]["model"] = str(model)
    values["encoder"] |= changes
    values["evidence"]["positive"] = values["examples"]["positive"] = "each"
    values["multihop"] = {"mdr": {"of": "eadpr", "init": "base"}}
    try:
        configs(values)
    except SettingError as error:
        return error.key
    return None


def test_a_cross_encoder_is_no_base(tmp_path):
    model = write_plain(tmp_path / "model", "bert")
    change(model, "config.json", architectures=["BertForSequenceClassification"])
    with pytest.raises(ValueError, match=r"base\.model: .*/model is a CrossEncoder, which makes no one vector"):
        make(tmp_path, model)


def test_a_default_prompt_that_is_of_questions_stands_before_no_passage(tmp_path):
    model = write_model(tmp_path / "model", "bert")
    change(model, "config_sentence_transformers.json", prompts={"query": "Q: "}, default_prompt_name="query")
    assert read_description(str(model)).settings.prompts == Prompts(question="Q: ", passage="")


def test_a_model_of_the_hub_is_asked_at_its_revision(tmp_path, monkeypatch):
    model, requests = write_model(tmp_path / "model", "bert", dense=(12,), prompts=PROMPTS), set()

    def download(name, file, *, revision):
        requests.add((name, revision))
        if not (model / file).exists():
            raise EntryNotFoundError(file)
        return str(model / file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    description = read_description("org/name", "v2", setting="base.model")
    assert description == read_description(str(model))._replace(dense=description.dense)
    assert requests == {("org/name", "v2")}
    monkeypatch.undo()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"base\.model: org/name: no hub says whether it has encoder\.json"):
        read_description("org/name", setting="base.model")


@pytest.mark.parametrize(("write", "brought", "complete"), [
    (write_plain, [], False), (write_plain, [".gitattributes"], True), (write_model, [], True),
])  # fmt: skip
def test_a_model_that_others_cached_whole_is_described_without_a_hub(tmp_path, monkeypatch, write, brought, complete):
    """Files that are not there are known to be missing where all were downloaded, or by sentence-transformers."""
    snapshot = write(tmp_path / "models--org--name" / "snapshots" / ("a" * 40), "bert")
    for name in brought:
        (snapshot / name).touch()
    (tmp_path / "models--org--name" / "refs").mkdir()
    (tmp_path / "models--org--name" / "refs" / "main").write_text("a" * 40)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    if complete:
        assert read_description("org/name").settings == read_description(str(snapshot)).settings
    else:
        with pytest.raises(ValueError, match=r"org/name: no hub says whether it has encoder\.json"):
            read_description("org/name")


def test_a_decoder_that_writes_nothing_between_a_pair_asks_hop_2_in_one_text(tmp_path):
    encoder = load_pretrained(str(write_model(tmp_path / "model", "qwen3")), AUTO, setting="x")
    expected = encoder.tokenizer("Who was it? Alman was")["input_ids"]
    assert second_ids(encoder, ["Who was it?"], ["Alman was"], 30)[0].tolist() == expected
