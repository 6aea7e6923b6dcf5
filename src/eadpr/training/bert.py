"""BERT and RoBERTa in plain torch, under transformers' names: equal states in less time, without its imports.

Importing transformers' models takes longer than encoding some thousand passages on a CPU. Here queries, keys and values
are one product, and where passes are in bfloat16 (`machine.autocast`) all states are, not only products.
Shapes: B texts, T tokens, H heads, D dimensions of a state.
"""

import re
from pathlib import Path
from typing import NamedTuple, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedConfig

WEIGHTS = "model.safetensors"
PREFIXES = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta."}  # of weights that have a head, by type
PARTS = re.compile(r"embeddings\.(?!position_ids$)|encoder\.")


class Output(NamedTuple):
    last_hidden_state: Tensor  # (B, T, D)


class Bert(nn.Module):
    """The encoder of a config that `computes` accepts, with the parts of PreTrainedModel that are used here."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__()
        self.config, self.name_or_path = config, config.name_or_path
        self.embeddings = _Embeddings(config)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))

    @classmethod
    def load(cls, folder: Path, config: PreTrainedConfig) -> Self | None:
        """Return the model of a folder in float32; None if it is another one, or its weights are not just these."""
        if not computes(config) or not (folder / WEIGHTS).is_file():
            return None
        with torch.device("meta"):
            model = cls(config)
        prefix = PREFIXES[config.model_type]
        weights = {name.removeprefix(prefix): value for name, value in load_file(folder / WEIGHTS).items()}
        # Heads of other tasks may be there, and positions in old files.
        weights = {name: value for name, value in weights.items() if PARTS.match(name)}
        expected = {name: value.shape for name, value in model.state_dict().items()}
        if expected != {name: value.shape for name, value in weights.items()}:
            return None
        model.load_state_dict({name: value.float() for name, value in weights.items()}, assign=True)
        return model.eval()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Output:
        """(B, T) ids, mask (1 for a token, 0 for padding, which stands at the end) and types, by default 0."""
        device = input_ids.device.type
        dtype = self.get_input_embeddings().weight.dtype
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        if mask is not None and device == "cpu" and mask.all():  # a GPU would have to wait for the answer
            mask = None
        with torch.autocast(device, enabled=False):
            states = self.embeddings(input_ids, token_type_ids).to(dtype)
            for layer in self.encoder.layer:
                states = layer(states, mask)
        return Output(states)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def save_pretrained(self, folder: Path) -> None:
        """Write config.json and the weights to an existing folder, as transformers does."""
        self.config.architectures = [type(self.config).__name__.replace("Config", "Model")]
        self.config.dtype = "float32"
        self.config.save_pretrained(folder)
        weights = {name: value.float().contiguous() for name, value in self.state_dict().items()}
        save_file(weights, folder / WEIGHTS, {"format": "pt"})


def computes(config: PreTrainedConfig) -> bool:
    """Check whether `Bert` computes what transformers does for a config."""
    expected = {"hidden_act": "gelu", "is_decoder": False, "add_cross_attention": False}
    absolute = getattr(config, "position_embedding_type", "absolute") == "absolute"
    same = all(getattr(config, name, None) == value for name, value in expected.items())
    return config.model_type in PREFIXES and same and absolute


class _Embeddings(nn.Module):
    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__()
        size, pad_id = config.hidden_size, config.pad_token_id
        # RoBERTa counts positions from behind the row of padding, and passes over tokens of padding in a text.
        padding = None if config.model_type == "bert" else pad_id
        self.word_embeddings = nn.Embedding(config.vocab_size, size, padding_idx=pad_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, size, padding_idx=padding)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        types = self.token_type_embeddings
        types = types.weight[0] if token_type_ids is None else types(token_type_ids)
        table = self.position_embeddings
        if table.padding_idx is None:
            places = table.weight[: input_ids.shape[1]]
        else:
            mask = input_ids != table.padding_idx
            places = table(mask.cumsum(1) * mask + table.padding_idx)
        return self.dropout(self.LayerNorm(self.word_embeddings(input_ids) + types + places))


class _Layer(nn.Module):
    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output = _Output(config.intermediate_size, config)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        states = self.attention(states, mask)
        return self.output(nn.functional.gelu(_linear(self.intermediate.dense, states)), states)


class _Attention(nn.Module):
    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.self = nn.Module()
        self.self.query, self.self.key, self.self.value = (nn.Linear(size, size) for _ in range(3))
        self.self.dropout = nn.Dropout(config.attention_probs_dropout_prob)
        self.output = _Output(size, config)
        self._heads = config.num_attention_heads

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        part = self.self
        projections = (part.query, part.key, part.value)
        weight, bias = (torch.cat([getattr(p, name) for p in projections]) for name in ("weight", "bias"))
        joined = nn.functional.linear(states, weight.to(states.dtype), bias.to(states.dtype))
        if joined.requires_grad and joined.device.type == "cpu" and joined.dtype == torch.bfloat16:
            joined = joined.float()  # torch's gradient of attention in bfloat16 takes six times as long there
        heads = (x.unflatten(-1, (self._heads, -1)).transpose(1, 2) for x in joined.chunk(3, -1))  # (B, H, T, D/H)
        dropout = part.dropout.p if self.training else 0.0
        mixed = nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask, dropout_p=dropout)
        return self.output(mixed.transpose(1, 2).flatten(2).to(states.dtype), states)


class _Output(nn.Module):
    """A linear layer, added to the states that it began from, and normalised."""

    def __init__(self, size: int, config: PreTrainedConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, inner: Tensor, states: Tensor) -> Tensor:
        added = self.dropout(_linear(self.dense, inner)) + states
        norm, dtype = self.LayerNorm, added.dtype
        weight, bias = norm.weight.to(dtype), norm.bias.to(dtype)
        return nn.functional.layer_norm(added, norm.normalized_shape, weight, bias, norm.eps)


def _linear(layer: nn.Linear, states: Tensor) -> Tensor:
    return nn.functional.linear(states, layer.weight.to(states.dtype), layer.bias.to(states.dtype))
