"""Workers of several pretended GPUs: shared weights, the order of results, and precision."""

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
    """Return what each of the workers got and what was loaded; every worker waits for all others."""
    pretend(monkeypatch, cards=cards, workers=workers)
    barrier, loaded = threading.Barrier(cards * workers, timeout=60), []

    def load_and_note():
        loaded.append(load())
        return loaded[-1]

    def make(mine):
        return lambda _: barrier.wait() >= 0 and mine

    return list(jobs.map_pieces(load_and_note, make, range(cards * workers))), loaded


@pytest.mark.parametrize(("cards", "workers"), [(1, 3), (2, 2), (3, 1)])
def test_a_card_loads_once_for_all_its_workers(cards, workers, monkeypatch):
    copies, loaded = workers_of(cards, workers, monkeypatch)
    assert len(loaded) == cards
    weights = [id(both.model.weight) for both in copies]
    assert sorted(weights) == sorted([id(both.model.weight) for both in loaded] * workers)


def test_a_worker_shares_only_weights(monkeypatch):
    copies, loaded = workers_of(1, 3, monkeypatch)
    assert len({id(both.model) for both in copies}) == 3
    copies[0].tokenizer(["one two"], truncation=True, max_length=1)
    assert [both.tokenizer.backend_tokenizer.truncation is None for both in copies] == [False, True, True]
    assert [both.tokenizer("one two").input_ids for both in copies[1:]] == [[1, 2]] * 2
    with torch.no_grad():
        loaded[0].model.weight.fill_(2)
    assert all((both.model.weight == 2).all() for both in copies)


def test_results_come_in_order_and_a_single_worker_gets_no_copy(monkeypatch):
    def results():
        return list(jobs.map_pieces(lambda: [7], lambda loaded: lambda piece: (piece, loaded[0]), "abcdefgh"))

    assert results() == [(piece, 7) for piece in "abcdefgh"]
    loaded = [7]
    assert next(jobs.map_pieces(lambda: loaded, lambda mine: lambda _: mine, "a")) is loaded
    pretend(monkeypatch, cards=3, workers=2)
    assert results() == [(piece, 7) for piece in "abcdefgh"]


def test_workers_take_turns_at_the_cards(monkeypatch):
    cards_of, barrier = {}, threading.Barrier(4, timeout=60)

    def work(number):
        barrier.wait()
        yield number

    monkeypatch.setitem(jobs.WORKERS, "cpu", 2)
    monkeypatch.setattr(machine, "devices", lambda: ["cuda:0", "cuda:1"])
    monkeypatch.setattr(torch.cuda, "set_device", lambda card: cards_of.setdefault(threading.get_ident(), card))
    assert sum(jobs.make_shards(list, lambda _: work, range(8), HIGH)) == sum(range(8))
    assert sorted(cards_of.values()) == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]


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


@pytest.mark.parametrize("make", [bert, lambda seed: t5(seed, tied=True), lambda seed: t5(seed, tied=False)])
def test_weights_in_bfloat16_give_the_bits_of_autocast(make):
    ids = torch.arange(24).view(3, 8)

    def compute(forward):
        with torch.inference_mode(), machine.autocast(LOW):
            return forward(ids)

    model, forward = make(0)
    expected = compute(forward)
    size = sum(weight.nbytes for weight in model.parameters())
    assert machine.place_model(model, HIGH) is model
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    machine.place_model(model, LOW)
    assert {part.weight.dtype for part in model.modules() if isinstance(part, Embedding)} == {torch.float32}
    assert sum(weight.nbytes for weight in model.parameters()) < 0.75 * size
    assert compute(forward).dtype == expected.dtype
    assert torch.equal(compute(forward), expected)
    assert not torch.equal(compute(make(1)[1]), expected)


@pytest.mark.parametrize(("device", "knows", "low"), [
    ("cuda", "native", (True, True)), ("cuda", "emulated", (False, False)),
    ("cpu", "amx_bf16", (True, False)), ("cpu", "avx512_bf16", (True, False)), ("cpu", "avx512_f", (False, False)),
])  # fmt: skip
def test_auto_is_bfloat16_where_the_device_multiplies_it_on_a_cpu_for_inference_alone(device, knows, low, monkeypatch):
    monkeypatch.setattr(machine, "device", lambda: device)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: knows == "native")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {knows: True})
    monkeypatch.setattr(torch, "autocast", lambda kind, *, dtype, enabled: enabled)
    auto = Machine(threads=1, deterministic=False, precision="auto")
    assert (machine.autocast(auto, inference=True), machine.autocast(auto)) == low
    assert (machine.autocast(HIGH, inference=True), machine.autocast(LOW)) == (False, True)
    assert ("bfloat16" in machine.libraries()) == low[0]
