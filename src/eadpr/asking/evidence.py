"""What the annotator answers from a passage, and which span of it the answer rests on.

The span is sought as in `supervision.evidence`, by leaving out one after the other. There is no gold answer to a user's
question, so the annotator's own answer to the whole passage is the one that has to become less likely.
"""

from collections.abc import Sequence
from math import exp
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr import machine
from eadpr.machine import Machine
from eadpr.questions import selected
from eadpr.records import Evidence, Passage, Question, Span
from eadpr.supervision import answer_nll, qa_model
from eadpr.supervision.annotator_manifest import Manifest, read_manifest
from eadpr.supervision.config import EvidenceSettings
from eadpr.supervision.evidence import CHARACTERS, Annotate, Request
from eadpr.supervision.pairs import Pair
from eadpr.text import answer_spans
from eadpr.training.padding import batches, pad

ANSWER_TOKENS = 32  # longest answer


class PassageAnswer(NamedTuple):
    """An answer from one passage: `likelihood`, 0 to 1, is the geometric mean over its tokens; `evidence`, 0 to 1, the
    share of it that is lost when `span` is left out. Without an answer both are 0; `span` is None where no span counts.
    """

    answer: str
    likelihood: float
    span: Span | None
    evidence: float


NOTHING = PassageAnswer("", 0.0, None, 0.0)


class Annotators:
    """The models of the folder `annotator`, loaded once. Raises ValueError where there is none.

    Where several were cross-fitted, a question of the collection is read by the first that did not learn from it; a
    new question is new to each of them. `questions` is the collection's table.
    """

    def __init__(self, folder: Path, settings: EvidenceSettings, hardware: Machine, *, questions: Path) -> None:
        manifest = read_manifest(folder)
        if not manifest.models:
            raise ValueError(
                f"{folder} holds no QA model (annotator.model is {manifest.source}), and `ask` needs one; set"
                " annotator.model in params.yaml and run `dvc repro`"
            )
        self._learnt = learnt(manifest, questions)
        found = (qa_model.load_annotator(folder, manifest, index) for index in range(len(manifest.models)))
        self._models = [(model.to(machine.device()), tokenizer) for model, tokenizer in found]
        self._manifest = manifest._replace(models=[model._replace(trained_on=[]) for model in manifest.models])
        self._settings, self._hardware = settings.model_copy(update={"strategies": ["pseudo"]}), hardware

    def __call__(self, question: str, passages: Sequence[Passage]) -> list[PassageAnswer]:
        """One reading per passage, in their order; passages without text have nothing to read."""
        model, tokenizer = self._models[self.model_for(question)]
        input_tokens, prompt = self._settings.input_tokens, self._manifest.prompt
        read = [i for i, passage in enumerate(passages) if passage.text.strip()]
        most = CHARACTERS * input_tokens
        inputs = [prompt.input(question, passages[i].title, passages[i].text[:most]) for i in read]

        def score(_: int, requests: Sequence[Request]) -> np.ndarray:
            return answer_nll.answer_nlls(model, tokenizer, requests, input_tokens=input_tokens)

        with machine.autocast(self._hardware):
            answers = greedy_answers(model, tokenizer, inputs, input_tokens=input_tokens)
            pairs = [_pair(question, passages[i], answer) for i, answer in zip(read, answers, strict=True)]
            rows = list(Annotate(self._settings, self._manifest, score)(pairs))
        found = dict(zip(read, map(reading, pairs, rows), strict=True))
        return [found.get(i, NOTHING) for i in range(len(passages))]

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


def _pair(question: str, passage: Passage, answer: str) -> Pair:
    return Pair(Question("", question, [answer] if answer else [], "string", None, None, None, None), passage, None)


@torch.inference_mode()
def greedy_answers(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, inputs: Sequence[str], *, input_tokens: int
) -> list[str]:
    """The likeliest token after the other, at most ANSWER_TOKENS; inputs are cut at their end. May be empty."""
    if not inputs:
        return []
    sources = tokenizer(list(inputs), truncation=True, max_length=input_tokens).input_ids
    answers = [""] * len(inputs)
    for part in batches(list(map(len, sources)), answer_nll.BATCH_TOKENS[model.device.type]):
        input_ids, mask = (t.to(model.device) for t in pad([sources[i] for i in part], tokenizer.pad_token_id))
        ids = model.generate(
            input_ids=input_ids, attention_mask=mask, do_sample=False, num_beams=1, max_new_tokens=ANSWER_TOKENS
        )
        for i, text in zip(part, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True):
            answers[i] = text.strip()
    return answers


def reading(pair: Pair, row: Evidence) -> PassageAnswer:
    """`row` is the evidence of the pair's one answer; the answer is written as in the passage where it stands there."""
    if not pair.target:
        return NOTHING
    held = answer_spans([pair.target], pair.passage.text)
    answer = pair.passage.text[held[0].start : held[0].end] if held else pair.target
    span = row.spans[row.chosen[0]]
    lost = max(0.0, 1 - exp(row.nll_full - span.nll))
    return PassageAnswer(answer, exp(-row.nll_full), Span(span.start, span.end) if lost else None, lost)
