"""The small T5 that the pipeline builds itself: a tokenizer learnt from the corpus, and random weights that copy."""

from collections.abc import Iterable

import torch
from tokenizers import normalizers
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from eadpr.supervision.config import Recipe
from eadpr.training.base import byte_level_bpe

END = "</s>"
NEIGHBOUR = 4.0  # added to the logits of a neighbouring token
RANDOM = 0.3  # share of their random weights that the heads of a copying attention keep, so that they differ


def train_tokenizer(texts: Iterable[str], *, vocabulary: int) -> PreTrainedTokenizerFast:
    """Learn a tokenizer from the texts. Its form is `a </s> b </s>`; pad is id 0, end 1, unknown 2."""
    special = {"pad_token": "<pad>", "eos_token": END, "unk_token": "<unk>"}
    single, pair = f"$A {END}", f"$A {END} $B {END}"
    return byte_level_bpe(
        texts, vocabulary=vocabulary, special=special, normalizer=normalizers.NFC(), single=single, pair=pair
    )


def new_model(recipe: Recipe, *, vocabulary: int) -> T5ForConditionalGeneration:
    """Return a small T5 with random weights (from torch's global seed), prepared to copy: see `_prepare_to_copy`."""
    sizes = {"d_model": recipe.width, "d_kv": recipe.width // recipe.heads, "d_ff": recipe.feed_forward}
    sizes |= {"num_layers": recipe.layers, "num_decoder_layers": recipe.layers, "num_heads": recipe.heads}
    special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    config = T5Config(vocab_size=vocabulary, dropout_rate=recipe.dropout, **sizes, **special)
    model = T5ForConditionalGeneration(config)
    _prepare_to_copy(model)
    return model


@torch.no_grad()
def _prepare_to_copy(model: T5ForConditionalGeneration) -> None:
    """Set weights that copy from the start: an induction head (Olsson et al., 2022) by mimetic initialisation (Trockman
    and Kolter, 2023). Without it 600 steps on real prose taught no copying at all (docs/log.md).

    One encoder head writes a subspace of the previous token to another subspace. The decoder's first cross-attention
    reads the same subspace of the token it wrote last as its query, so it attends to what follows that in the input. A
    token that is attended to raises its own logit, as the output matrix is the transpose of an orthogonal value matrix.
    """
    keys, width = model.config.d_kv, model.config.d_model
    for block in model.decoder.block:
        attention = block.layer[1].EncDecAttention
        torch.nn.init.orthogonal_(attention.v.weight)
        attention.o.weight.copy_(attention.v.weight.T)
    read, write = torch.nn.init.orthogonal_(torch.empty(width, width))[: 2 * keys].split(keys)  # (keys, width) each
    encoder = model.encoder.block[0].layer[0].SelfAttention
    encoder.v.weight[:keys] = read
    encoder.o.weight[:, :keys] = write.T
    cross = model.decoder.block[0].layer[1].EncDecAttention
    for weight, content in ((cross.q.weight, read), (cross.k.weight, write)):
        weight.mul_(RANDOM).add_(content.repeat(model.config.num_heads, 1))
    bias = encoder.relative_attention_bias.weight  # (buckets, heads)
    previous, following = 1, len(bias) // 2 + 1  # T5's buckets of the distances -1 and +1
    bias[previous, 0] += 2 * NEIGHBOUR
    bias[following, 1] += NEIGHBOUR
