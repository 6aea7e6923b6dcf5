"""How likely the annotator finds each span of a sentence as the answer to a question.

Nothing is generated: spans of the sentence are the only candidates, so no answer can loop or stand nowhere. The
likelihood is that of the whole answer, its end included, so that spans of any length compare.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.storage.questions import selected
from eadpr.supervision import answer_nll, qa_model
from eadpr.supervision.annotator_manifest import Manifest, Prompt, read_manifest
from eadpr.training.padding import batches, pad

WORDS = 8  # of the longest answer
STARTS = 6  # words of a sentence that an answer may start with: those with the likeliest first tokens
ROWS = 64  # answers read at once

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


class Snippet(NamedTuple):
    """A sentence and the title of its passage."""

    title: str
    text: str


class AnswerSpan(NamedTuple):
    """Characters of a snippet's text, and the log likelihood of answering with them."""

    start: int
    end: int
    log_likelihood: float


class _Start(NamedTuple):
    """The answers that start at a word: token ids of the longest and, for a number of these, the end of an answer."""

    snippet: int
    start: int
    ids: list[int]
    ends: dict[int, int]


class Annotators:
    """The models of the folder `annotator`, loaded once. Raises ValueError where there is none.

    Where several were cross-fitted, a question of the collection is read by the first that did not learn from it; a
    new question is new to each of them. `questions` is the collection's table.
    """

    def __init__(self, folder: Path, input_tokens: int, hardware: Machine, *, questions: Path) -> None:
        manifest = read_manifest(folder)
        if not manifest.models:
            raise ValueError(
                f"{folder} holds no QA model (annotator.model is {manifest.source}), and `ask` needs one; set"
                " annotator.model in params.yaml and run `dvc repro`"
            )
        self._learnt = learnt(manifest, questions)
        found = (qa_model.load_annotator(folder, manifest, index) for index in range(len(manifest.models)))
        self._models = [(model.to(machine.device()), tokenizer) for model, tokenizer in found]
        self._prompt, self._input_tokens, self._hardware = manifest.prompt, input_tokens, hardware

    def __call__(self, question: str, snippets: Sequence[Snippet]) -> list[list[AnswerSpan]]:
        """The spans of each snippet, likeliest first."""
        model, tokenizer = self._models[self.model_for(question)]
        with machine.autocast(self._hardware):
            return answer_spans(
                model, tokenizer, self._prompt, question, snippets, input_tokens=self._input_tokens
            )  # fmt: skip

    def model_for(self, question: str) -> int:
        """Index of the first model that did not learn from the question, else of the first."""
        return next((i for i, known in enumerate(self._learnt) if _plain(question) not in known), 0)


def learnt(manifest: Manifest, questions: Path) -> list[frozenset[str]]:
    """The texts of the questions that each model learnt from; where there is but one, nothing depends on them."""
    if len(manifest.models) == 1:
        return [frozenset()]
    seen = manifest.seen()
    texts = {question.id: _plain(question.question) for question in selected(questions, frozenset().union(*seen))}
    return [frozenset(texts[i] for i in ids if i in texts) for ids in seen]


def _plain(question: str) -> str:
    return " ".join(question.lower().split())


@torch.inference_mode()
def answer_spans(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: Prompt,
    question: str,
    snippets: Sequence[Snippet],
    *,
    input_tokens: int,
) -> list[list[AnswerSpan]]:
    """Up to WORDS words in a row of each snippet, from STARTS places; inputs are cut at their end."""
    found: list[list[AnswerSpan]] = [[] for _ in snippets]
    starts = [_starts(tokenizer, prompt, place, snippet.text) for place, snippet in enumerate(snippets)]
    read = [place for place, own in enumerate(starts) if own]
    if not read:
        return found
    inputs = [prompt.input(question, *snippets[place]) for place in read]
    sources = tokenizer(inputs, truncation=True, max_length=input_tokens).input_ids
    for part in batches(list(map(len, sources)), answer_nll.BATCH_TOKENS[model.device.type]):
        ids, mask = (t.to(model.device) for t in pad([sources[i] for i in part], tokenizer.pad_token_id))
        encoded = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        own = [starts[read[i]] for i in part]
        for place, span in _scored(model, tokenizer.eos_token_id, encoded, mask, own):
            found[place].append(span)
    return [sorted(spans, key=lambda span: (-span.log_likelihood, span)) for spans in found]


def _starts(tokenizer: PreTrainedTokenizerBase, prompt: Prompt, place: int, text: str) -> list[_Start]:
    words = [match.span() for match in _WORD.finditer(text)]
    if not words:
        return []
    longest = [[end for _, end in words[i : i + WORDS]] for i in range(len(words))]
    pieces = [prompt.cased(text[start : ends[-1]]) for (start, _), ends in zip(words, longest, strict=True)]
    tokens = tokenizer(pieces, add_special_tokens=False, return_offsets_mapping=True)
    found = []
    for (start, _), ends, ids, offsets in zip(words, longest, tokens.input_ids, tokens.offset_mapping, strict=True):
        at = {len(prompt.cased(text[start:end])): end for end in ends}
        answers = {count: at[end] for count, (_, end) in enumerate(offsets, start=1) if end in at}
        found.append(_Start(place, start, ids[: answer_nll.TARGET_TOKENS], answers))
    return found


def _scored(
    model: PreTrainedModel, end_id: int, encoded: torch.Tensor, mask: torch.Tensor, starts: Sequence[Sequence[_Start]]
) -> list[tuple[int, AnswerSpan]]:
    """(place of the snippet, span) for the likeliest starts of every row of `encoded`."""

    def log_probabilities(rows: torch.Tensor, ids: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        padded = pad([[model.config.decoder_start_token_id, *row] for row in ids], 0)[0].to(model.device)
        outputs = model(
            encoder_outputs=(encoded[rows],), attention_mask=mask[rows], decoder_input_ids=padded
        ).logits.float()  # fmt: skip
        return outputs.log_softmax(-1), padded

    first = log_probabilities(torch.arange(len(starts)), [[] for _ in starts])[0][:, 0].cpu().numpy()
    kept: list[tuple[int, _Start]] = []
    for row, own in enumerate(starts):
        order = np.argsort(-first[row, [one.ids[0] for one in own]], kind="stable")[:STARTS]
        kept += [(row, own[i]) for i in order.tolist()]
    found = []
    for at in range(0, len(kept), ROWS):
        part = kept[at : at + ROWS]
        logs, padded = log_probabilities(torch.tensor([row for row, _ in part]), [one.ids for _, one in part])
        # Added up on the CPU: not every torch does it in a fixed order on a card, and without one it ends.
        tokens = logs[:, :-1].gather(2, padded[:, 1:, None])[..., 0].cpu().cumsum(1)
        ended = (tokens + logs[:, 1:, end_id].cpu()).tolist()
        for (_, one), scores in zip(part, ended, strict=True):
            found += [
                (one.snippet, AnswerSpan(one.start, end, scores[count - 1]))
                for count, end in one.ends.items()
                if count <= len(one.ids)
            ]
    return found
