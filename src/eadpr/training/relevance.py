"""How relevant texts are to questions, by a reranker or by the tokens of an encoder. B: pairs of both."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.runtime import machine
from eadpr.training.config import AUTO
from eadpr.training.encoder import TextEncoder, load_pretrained
from eadpr.training.late import part_scores
from eadpr.training.padding import TOKENS, batches, pad
from eadpr.training.pretrained import load_whole, position_limit
from eadpr.training.self_description import read_class

CHARACTERS = 4  # per token, about: batches are cut before texts are tokens

Reranker = tuple[PreTrainedModel, PreTrainedTokenizerBase]
Texts = Sequence[str]


def load(name: str, *, revision: str | None = None, setting: str = "annotator.model") -> Reranker | TextEncoder:
    """Load a cross-encoder of one label, or an encoder, by folder or hub name; raises ValueError for other models."""
    if read_class(name, revision, setting=setting) != "CrossEncoder":
        return load_pretrained(name, AUTO.model_copy(update={"unit": "token"}), revision=revision, setting=setting)
    model, tokenizer = load_whole(name, "AutoModelForSequenceClassification", setting=setting, revision=revision)
    if model.config.num_labels != 1:
        raise ValueError(f"{setting} {name!r} has {model.config.num_labels} labels; a reranker has one, the relevance")
    return model, tokenizer


@torch.inference_mode()
def score(model: Reranker | TextEncoder, pairs: Sequence[tuple[str, ...]], *, input_tokens: int) -> np.ndarray:
    """Return the relevance (N,) float32 of pairs of question, title and text: a reranker's logit, which reads
    `input_tokens`, or the late score (`training.late`) of an encoder's tokens, at its own lengths."""
    scores = np.empty(len(pairs), np.float32)
    by_tokens, lengths = isinstance(model, TextEncoder), [len(title) + len(text) for _, title, text in pairs]
    for batch in batches(lengths, CHARACTERS * TOKENS[machine.device()]):
        texts = zip(*(pairs[i] for i in batch), strict=True)
        scores_B = _score_by_tokens(model, *texts) if by_tokens else _rerank(model, *texts, input_tokens)
        scores[batch] = scores_B.float().cpu().numpy()
    return scores


def _rerank(reranker: Reranker, questions: Texts, titles: Texts, texts: Texts, input_tokens: int) -> Tensor:
    model, tokenizer = reranker
    passages = [f"{title} {text}".strip() for title, text in zip(titles, texts, strict=True)]
    cut = {"truncation": "longest_first", "max_length": min(input_tokens, position_limit(model))}
    inputs = tokenizer(list(questions), passages, **cut, padding=True, return_tensors="pt").to(model.device)
    return model.eval()(**inputs).logits[:, 0]


def _score_by_tokens(encoder: TextEncoder, questions: Texts, titles: Texts, texts: Texts) -> Tensor:
    sides = encoder.question_ids(questions), encoder.passage_ids(titles, texts)
    padded = [[part.to(machine.device()) for part in pad(ids, encoder.pad_id)] for ids in sides]
    rows_of_questions, rows_of_texts = (encoder.eval()(*side) for side in padded)
    present_BW = rows_of_texts.unflatten(1, (-1, encoder.token_dim)).any(-1)
    return part_scores(rows_of_questions, rows_of_texts, present_BW[:, None], encoder.token_dim)[:, 0]
