"""A shortlist of the spans that may be a passage's evidence, by an nll that costs a fraction of the exact one.

For the exact nll the QA model reads the passage again without the span. Here the encoder reads the whole passage once,
and the decoder answers once per span, each time with that span's tokens hidden. The tokens around a span have taken
over some of its content, so exact nlls decide among the spans near the highest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.runtime import parallel
from eadpr.storage.records import Span
from eadpr.supervision.answer_nll import BATCH_TOKENS, IGNORED, batches, token_ids
from eadpr.training.padding import pad

TOKENS = 128  # of the decoder's input, all views together: attention among them costs the square


class Hidden(NamedTuple):
    """A request with `spans` of the input `source`, in characters, to hide one by one."""

    source: str
    spans: list[Span]
    target: str


class _Row(NamedTuple):
    """A request in token ids. `hidden`, shape (spans + 1, tokens), is true at hidden tokens; the last row has none."""

    source: list[int]
    target: list[int]
    hidden: np.ndarray


def near(nlls: np.ndarray, within: float) -> list[int]:
    """Return the indices of the spans with an nll at most `within` nats below the highest."""
    return np.flatnonzero(nlls >= nlls.max() - within).tolist()


def hidden_nlls(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[Hidden], *, input_tokens: int
) -> list[np.ndarray]:
    """Return for each request, shape (spans + 1,), float32, the target's nll with each span hidden and, last, with
    none, which `answer_nlls` would return too. Inputs are cut as there.

    Raises ValueError for a model without relative positions.
    """
    if not hasattr(model.config, "relative_attention_num_buckets"):
        raise ValueError(
            f"evidence.shortlist needs an annotator with a T5's relative positions, but this one is a"
            f" {model.config.model_type}; set evidence.shortlist to null"
        )
    rows = _rows(tokenizer, requests, input_tokens)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].source))
    cut = batches([rows[i] for i in order], BATCH_TOKENS[model.device.type])
    scored = parallel.spread(lambda batch: _score(model, tokenizer.pad_token_id, batch), cut)
    nlls = dict(zip(order, (nll for batch in scored for nll in batch), strict=True))
    return [nlls[i] for i in range(len(rows))]


def _rows(tokenizer: PreTrainedTokenizerBase, requests: Sequence[Hidden], input_tokens: int) -> list[_Row]:
    texts = [(request.source, request.target) for request in requests]
    inputs, targets = token_ids(tokenizer, texts, input_tokens, return_offsets_mapping=True)
    rows = []
    for request, source, offsets, target in zip(
        requests, inputs.input_ids, inputs.offset_mapping, targets, strict=True
    ):
        starts, ends = np.array(offsets).T
        hidden = [(starts < span.end) & (ends > span.start) for span in request.spans]
        rows.append(_Row(source, target, np.array([*hidden, np.zeros(len(source), dtype=bool)])))
    return rows


@torch.inference_mode()
def _score(model: PreTrainedModel, pad_id: int, batch: Sequence[_Row]) -> list[np.ndarray]:
    """Return the nlls of each row, with each span hidden and with none.

    The decoder's views of one input are blocks of one sequence that see the input but not each other. A T5 has relative
    positions, so each block is as if alone, and the input's keys and values are computed once.
    """
    ids, mask = (tensor.to(model.device) for tensor in pad([row.source for row in batch], pad_id))
    labels = pad([row.target for row in batch], IGNORED)[0].to(model.device)
    seen = mask.bool()[:, None].repeat(1, max(len(row.hidden) for row in batch), 1)  # (B, views, tokens)
    for views, row in zip(seen, batch, strict=True):
        views[: len(row.hidden), : len(row.source)] &= torch.from_numpy(~row.hidden).to(model.device)
    states = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    size = max(1, TOKENS // labels.shape[1])
    nlls = torch.cat([_decode(model, states, part, labels) for part in seen.split(size, dim=1)], dim=1)
    return [nll[: len(row.hidden)].numpy() for nll, row in zip(nlls.cpu(), batch, strict=True)]


def _decode(model: PreTrainedModel, states: Tensor, seen: Tensor, labels: Tensor) -> Tensor:
    """Return nlls, shape (B, views); `labels` are (B, T), `seen` is true at each view's tokens, (B, views, tokens)."""
    (rows, views, _), tokens = seen.shape, labels.shape[1]
    causal = torch.ones(tokens, tokens, dtype=torch.bool, device=seen.device).tril()
    blocks = torch.block_diag(*[causal] * views)
    logits = model(
        encoder_outputs=(states,),
        attention_mask=_attention_bias(seen.repeat_interleave(tokens, dim=1), states.dtype),
        decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels).repeat(1, views),
        decoder_attention_mask=_attention_bias(blocks[None], states.dtype),
        use_cache=False,
    ).logits.float()
    targets = labels.repeat(1, views).flatten()  # flat, which is a fourth of the time of `mean_nll`
    losses = cross_entropy(logits.flatten(0, 1), targets, ignore_index=IGNORED, reduction="none")
    return losses.view(rows, views, tokens).sum(dim=2) / (labels != IGNORED).sum(dim=1, keepdim=True)


def _attention_bias(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the bias of attention's logits, (B, 1, queries, keys): 0 where `seen`, the lowest number elsewhere."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)[:, None]
