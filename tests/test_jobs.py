"""Workers of several cards, which are no real ones: what they share, and in which order their results come."""

import threading
from typing import NamedTuple

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch.nn import Embedding, Linear
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from eadpr.runtime import jobs, machine
from eadpr.runtime.machine import Machine

LOW = Machine(threads=1, deterministic=False, precision="bfloat16")
HIGH = Machine(threads=1, deterministic=False, precision="float32")
SIZES = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 40}


class Both(NamedTuple):
    model: torch.nn.Module
    tokenizer: PreTrainedTokenizerFast


def pretend(monkeypatch, *, cards, workers):
    monkeypatch.setattr(machine, "devices", lambda: ["cpu"] * cards)
    monkeypatch.setitem(jobs.WORKERS, "cpu", workers)


def load():
    words = Tokenizer(WordLevel({"[PAD]": 0, "one": 1, "two": 2}, unk_token="[PAD]"))
    words.pre_tokenizer = Whitespace()
    return Both(Linear(3, 3), PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]"))


def workers_of(cards, workers, monkeypatch):
    """What each of the workers was given, and what was loaded; every worker waits for all others."""
    pretend(monkeypatch, cards=cards, workers=workers)
    together, loaded = threading.Barrier(cards * workers, timeout=60), []

    def loading():
        loaded.append(load())
        return loaded[-1]

    def work(given):
        def own(_):
            together.wait()
            return given

        return own

    return list(jobs.map_pieces(loading, work, range(cards * workers))), loaded


@pytest.mark.parametrize(("cards", "workers"), [(1, 3), (2, 2), (3, 1)])
def test_a_card_loads_once_for_all_its_workers(cards, workers, monkeypatch):
    found, loaded = workers_of(cards, workers, monkeypatch)
    assert len(loaded) == cards
    weights = [id(given.model.weight) for given in found]
    assert sorted(weights) == sorted([id(one.model.weight) for one in loaded] * workers)


def test_a_worker_shares_nothing_but_weights(monkeypatch):
    found, loaded = workers_of(1, 3, monkeypatch)
    for own in ([given.model for given in found], [given.tokenizer.backend_tokenizer for given in found]):
        assert len({id(one) for one in own}) == 3
    found[0].tokenizer(["one two"], truncation=True, max_length=1)
    assert [given.tokenizer.backend_tokenizer.truncation is None for given in found] == [False, True, True]
    assert [given.tokenizer("one two").input_ids for given in found[1:]] == [[1, 2]] * 2
    with torch.no_grad():
        loaded[0].model.weight.fill_(2)
    assert all((given.model.weight == 2).all() for given in found)


def test_what_is_loaded_may_be_several_models_in_lists(monkeypatch):
    pretend(monkeypatch, cards=1, workers=2)
    pairs = [load(), load()]
    for given in jobs.map_pieces(lambda: pairs, lambda given: lambda _: given, range(2)):
        assert [one.model.weight is mine.model.weight for one, mine in zip(given, pairs, strict=True)] == [True, True]


def test_results_come_in_the_order_of_the_pieces_and_one_worker_gets_what_was_loaded(monkeypatch):
    alone = list(jobs.map_pieces(lambda: [7], lambda given: lambda piece: (piece, given[0]), "abcdefgh"))
    assert alone == [(piece, 7) for piece in "abcdefgh"]
    pretend(monkeypatch, cards=3, workers=2)
    assert list(jobs.map_pieces(lambda: [7], lambda given: lambda piece: (piece, given[0]), "abcdefgh")) == alone
    monkeypatch.undo()
    loaded = [7]
    assert next(jobs.map_pieces(lambda: loaded, lambda given: lambda _: given, "a")) is loaded


@pytest.mark.parametrize(("cards", "chosen"), [(None, ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]), (1, ["cuda:0"] * 2)])
def test_workers_take_turns_in_choosing_a_card(cards, chosen, monkeypatch):
    found, together = {}, threading.Barrier(len(chosen), timeout=60)

    def work(number):
        together.wait()
        yield number

    monkeypatch.setitem(jobs.WORKERS, "cpu", 2)
    monkeypatch.setattr(machine, "devices", lambda: ["cuda:0", "cuda:1"])
    monkeypatch.setattr(torch.cuda, "set_device", lambda card: found.setdefault(threading.get_ident(), card))
    assert sum(jobs.make_shards(list, lambda _: work, range(8), HIGH, cards)) == sum(range(8))
    assert sorted(found.values()) == chosen


def bert(seed):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    model = BertModel(BertConfig(**sizes, vocab_size=40, max_position_embeddings=16), add_pooling_layer=False).eval()
    return model, lambda ids: model(input_ids=ids).last_hidden_state


def t5(seed, *, tied):
    torch.manual_seed(seed)
    config = T5Config(**SIZES, tie_word_embeddings=tied, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).eval()
    return model, lambda ids: model(input_ids=ids, decoder_input_ids=ids[:, :3]).logits


@pytest.mark.parametrize("made", [bert, lambda seed: t5(seed, tied=True), lambda seed: t5(seed, tied=False)])
def test_weights_in_bfloat16_give_the_bits_of_autocast(made):
    ids = torch.arange(24).view(3, 8)
    model, forward = made(0)
    with torch.inference_mode(), machine.autocast(LOW):
        expected = forward(ids)
    before = sum(weight.nbytes for weight in model.parameters())
    assert machine.place_model(model, HIGH) is model
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    machine.place_model(model, LOW)
    embedded = [part.weight for part in model.modules() if isinstance(part, Embedding)]
    assert {weight.dtype for weight in embedded} == {torch.float32}
    assert sum(weight.nbytes for weight in model.parameters()) < 0.75 * before
    with torch.inference_mode(), machine.autocast(LOW):
        found = forward(ids)
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)
    with torch.inference_mode(), machine.autocast(LOW):
        assert not torch.equal(made(1)[1](ids), expected)


@pytest.mark.parametrize(("emulated", "low"), [(False, True), (True, False)])
def test_auto_is_bfloat16_where_a_card_computes_in_it(emulated, low, monkeypatch):
    def supported(including_emulation=True):
        return including_emulation or not emulated

    monkeypatch.setattr(machine, "device", lambda: "cuda")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    monkeypatch.setattr(torch, "autocast", lambda kind, *, dtype, enabled: (kind, dtype, enabled))
    auto = Machine(threads=1, deterministic=False, precision="auto")
    assert machine.autocast(auto) == ("cuda", torch.bfloat16, low)
