"""Floating-point operations that models need for texts of given lengths, padding left out.

Those of matrix products, two per multiply-add; embeddings, norms, activations, softmax and optimiser are not counted.
"""

from collections.abc import Iterable
from typing import NamedTuple

from transformers import PretrainedConfig

BACKWARD = 2  # gradients of inputs and of weights take as many operations each as the forward pass


class Transformer(NamedTuple):
    """Of a stack of layers: width of the states, of all attention heads together, and of the feed-forward part."""

    layers: int
    width: int
    heads_width: int
    feed_forward: int


def bert(config: PretrainedConfig) -> Transformer:
    return Transformer(config.num_hidden_layers, config.hidden_size, config.hidden_size, config.intermediate_size)


def t5(config: PretrainedConfig) -> Transformer:
    """Either stack of a T5 with as many layers in both."""
    return Transformer(config.num_layers, config.d_model, config.num_heads * config.d_kv, config.d_ff)


def encoded(model: Transformer, lengths: Iterable[int]) -> int:
    """A forward pass over texts of these lengths in tokens."""
    return sum(_layers(model, length) for length in lengths)


def scored(model: Transformer, vocabulary: int, pairs: Iterable[tuple[int, int]]) -> int:
    """A forward pass of an encoder-decoder over inputs and targets of these lengths in tokens, logits included."""
    projection = 2 * model.width * model.heads_width
    total = 0
    for source, target in pairs:
        cross = model.layers * (
            2 * projection * target  # queries and outputs
            + 2 * projection * source  # keys and values
            + 4 * source * target * model.heads_width  # attention's weights and what they mix
        )
        total += _layers(model, source) + _layers(model, target) + cross + 2 * target * model.width * vocabulary
    return total


def trained(model: Transformer, lengths: Iterable[int]) -> int:
    """Forward and backward pass of an encoder."""
    return (1 + BACKWARD) * encoded(model, lengths)


def _layers(model: Transformer, length: int) -> int:
    weights = 4 * model.width * model.heads_width + 2 * model.width * model.feed_forward
    return model.layers * (2 * length * weights + 4 * length**2 * model.heads_width)
