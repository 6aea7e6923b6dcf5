"""The spans of a passage that may be its evidence, by an nll of the answer that costs a fraction of the exact one.

The exact nll without a span has the QA model read the passage anew without it. Here the encoder reads the whole passage
once, and the decoder answers as often as there are spans, each time without looking at one span's tokens. What the
tokens around took over from the span stays, so that exact nlls decide among spans that are near the highest.
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
    """`spans` of the input `source`, in characters, that are hidden one by one."""

    source: str
    spans: list[Span]
    target: str


class _Row(NamedTuple):
    """`hidden`, shape (spans + 1, tokens), is true at the tokens that are hidden; in the last row nothing is."""

    source: list[int]
    target: list[int]
    hidden: np.ndarray


def near(nlls: np.ndarray, within: float) -> list[int]:
    """Indices of the spans whose nll lies at most `within` nats below the highest."""
    return np.flatnonzero(nlls >= nlls.max() - within).tolist()


def hidden_nlls(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, asked: Sequence[Hidden], *, input_tokens: int
) -> list[np.ndarray]:
    """For each, shape (spans + 1,), float32: the nll of the target with each span hidden and, last, with none, which is
    that of `answer_nlls`. Inputs are cut as there. Raises ValueError for a model without relative positions."""
    if not hasattr(model.config, "relative_attention_num_buckets"):
        raise ValueError(
            f"evidence.shortlist needs an annotator with a T5's relative positions, but this one is a"
            f" {model.config.model_type}; set evidence.shortlist to null"
        )
    rows = _rows(tokenizer, asked, input_tokens)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].source))
    cut = batches([rows[i] for i in order], BATCH_TOKENS[model.device.type])
    scored = parallel.spread(lambda batch: _score(model, tokenizer.pad_token_id, batch), cut)
    nlls = dict(zip(order, (nll for batch in scored for nll in batch), strict=True))
    return [nlls[i] for i in range(len(rows))]


def _rows(tokenizer: PreTrainedTokenizerBase, asked: Sequence[Hidden], input_tokens: int) -> list[_Row]:
    requests = [(one.source, one.target) for one in asked]
    read, targets = token_ids(tokenizer, requests, input_tokens, return_offsets_mapping=True)
    rows = []
    for one, source, offsets, target in zip(asked, read.input_ids, read.offset_mapping, targets, strict=True):
        starts, ends = np.array(offsets).T
        hidden = [(starts < span.end) & (ends > span.start) for span in one.spans]
        rows.append(_Row(source, target, np.array([*hidden, np.zeros(len(source), dtype=bool)])))
    return rows


@torch.inference_mode()
def _score(model: PreTrainedModel, pad_id: int, batch: Sequence[_Row]) -> list[np.ndarray]:
    """The decoder's views of one input are blocks of one sequence, which see the input but not each other: a T5 has
    relative positions, so that each is as if it stood alone, and the input's keys and values are made once."""
    ids, mask = (tensor.to(model.device) for tensor in pad([row.source for row in batch], pad_id))
    labels = pad([row.target for row in batch], IGNORED)[0].to(model.device)
    seen = mask.bool()[:, None].repeat(1, max(len(row.hidden) for row in batch), 1)  # (B, views, tokens)
    for of_row, row in zip(seen, batch, strict=True):
        of_row[: len(row.hidden), : len(row.source)] &= torch.from_numpy(~row.hidden).to(model.device)
    states = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    views = max(1, TOKENS // labels.shape[1])
    nlls = torch.cat([_decode(model, states, part, labels) for part in seen.split(views, dim=1)], dim=1)
    return [nll[: len(row.hidden)].numpy() for nll, row in zip(nlls.cpu(), batch, strict=True)]


def _decode(model: PreTrainedModel, states: Tensor, seen: Tensor, labels: Tensor) -> Tensor:
    """Shape (B, views), of labels (B, T) and what each view sees of the input, (B, views, tokens)."""
    (rows, views, _), tokens = seen.shape, labels.shape[1]
    causal = torch.ones(tokens, tokens, dtype=torch.bool, device=seen.device).tril()
    own = torch.block_diag(*[causal] * views)
    logits = model(
        encoder_outputs=(states,),
        attention_mask=_added(seen.repeat_interleave(tokens, dim=1), states.dtype),
        decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels).repeat(1, views),
        decoder_attention_mask=_added(own[None], states.dtype),
        use_cache=False,
    ).logits.float()
    wanted = labels.repeat(1, views).flatten()  # flat, which is a fourth of the time of `mean_nll`
    losses = cross_entropy(logits.flatten(0, 1), wanted, ignore_index=IGNORED, reduction="none")
    return losses.view(rows, views, tokens).sum(dim=2) / (labels != IGNORED).sum(dim=1, keepdim=True)


def _added(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to attention's logits, (B, 1, queries, keys)."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)[:, None]
