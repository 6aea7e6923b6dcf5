"""The surprise of a QA model at an answer: the mean negative log-likelihood (nll) of its tokens, in nats.

Perplexity is its exponential, so that the same span is highest in both.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.runtime import machine, parallel
from eadpr.supervision.config import EvidenceSettings
from eadpr.supervision.manifest import Manifest, Request, Score
from eadpr.training import relevance
from eadpr.training.padding import pad

# Padded input tokens per batch, by device: bounds memory, changes no score by more than rounding. CPU: fits the caches.
BATCH_TOKENS = {"cpu": 4_096, "cuda": 65_536}
TARGET_TOKENS = 128  # longer answers are scored by their first tokens
IGNORED = -100


def make_scorer(model_of: Callable, manifest: Manifest, settings: EvidenceSettings, hardware: machine.Machine) -> Score:
    """Return the function that scores with the models of a manifest, by their indices."""

    def score(index: int, requests: Sequence[Request]) -> np.ndarray:
        with machine.autocast(hardware, inference=True):
            if not manifest.relevance:
                return answer_nlls(*model_of(index), requests, input_tokens=settings.input_tokens)
            scores = relevance.score(model_of(index), requests, input_tokens=settings.input_tokens)
            return -scores if manifest.relevance == "removal" else scores

    return score


def answer_nlls(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[Request], *, input_tokens: int
) -> np.ndarray:
    """Return the nlls, float32, of one or more requests, sorted by length and cut into batches of BATCH_TOKENS; equal
    requests are scored once. An input longer than `input_tokens` loses its end."""
    sources, targets = map(list, zip(*requests, strict=True))
    source_ids = tokenizer(sources, truncation=True, max_length=input_tokens).input_ids
    target_ids = tokenizer(targets, truncation=True, max_length=TARGET_TOKENS).input_ids
    keys = list(zip(map(tuple, source_ids), map(tuple, target_ids), strict=True))
    distinct = sorted(set(keys), key=lambda key: (len(key[0]), len(key[1]), key))
    cut = batches(distinct, BATCH_TOKENS[model.device.type])
    nlls = torch.cat(list(parallel.spread(lambda batch: _score(model, tokenizer.pad_token_id, batch), cut)))
    scores = dict(zip(distinct, nlls.tolist(), strict=True))
    return np.array([scores[key] for key in keys], dtype=np.float32)


def batches(keys: Sequence[tuple], tokens: int) -> list[list[tuple]]:
    """Cut keys (source ids, target ids), sorted by length, into batches of at most `tokens` input tokens with padding.

    A batch with a fourth of that also ends where lengths change: unpadded, a T5 needs no masks, a seventh of its time.
    """
    batches: list[list[tuple]] = []
    for key in keys:
        length = len(key[0])
        last = batches[-1] if batches else []
        size = len(last) * length
        equal = bool(last) and len(last[-1][0]) == length
        if last and size + length <= tokens and (equal or size < tokens / 4):
            last.append(key)
        else:
            batches.append([key])
    return batches


@torch.inference_mode()
def _score(model: PreTrainedModel, pad_id: int, batch: Sequence[tuple]) -> torch.Tensor:
    """Return, shape (B,), the mean of -log softmax(logits)[label] over the labels of each target."""
    tensors = (*pad([source for source, _ in batch], pad_id), pad([target for _, target in batch], IGNORED)[0])
    input_ids, mask, labels = (tensor.to(model.device) for tensor in tensors)
    shifted = model.prepare_decoder_input_ids_from_labels(labels)  # given labels, the model computes a loss as well
    logits = model(input_ids=input_ids, attention_mask=mask, decoder_input_ids=shifted).logits.float()
    losses = cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    return losses.sum(dim=1) / (labels != IGNORED).sum(dim=1)
