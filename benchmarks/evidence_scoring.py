"""How surprised the annotator is by an answer, for every candidate of many questions: questions per second.

The model is the one that the pipeline builds, with random weights; the candidates are those of strategy `pseudo`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks import data
from benchmarks.runner import Comparison, Goal, Side, fastest, within
from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.supervision import small_t5
from eadpr.supervision.answer_nll import Request, answer_nlls
from eadpr.supervision.config import Annotator, EvidenceSettings
from eadpr.supervision.evidence import Annotate
from eadpr.supervision.manifest import Manifest, Model, Prompt


class Size(NamedTuple):
    passages: int
    questions: int
    batch_sizes: tuple[int, ...]
    tried: int  # requests with which the batch size is chosen


FULL = Size(passages=2_100, questions=200, batch_sizes=(8, 16, 32, 64), tried=500)
QUICK = Size(passages=1_050, questions=3, batch_sizes=(4,), tried=4)
TOLERANCES = {"auto": 0.3, "float32": 1e-4}


def comparisons(size: Size, folder: Path) -> Iterator[Comparison]:
    """Ours in the machine's precision with one candidate at a time as peer, ours in float32 with batches."""
    settings = EvidenceSettings(**data.section("evidence"))
    requests, weights = candidates(size, settings), annotator(size)
    single, batched = (
        partial(function, *weights, tokens=settings.input_tokens) for function in (one_by_one, in_input_order)
    )
    best = fastest(size.batch_sizes, lambda batch: batched(requests[: size.tried], batch=batch))
    for precision, peer, bound, theirs in (
        ("auto", "transformers, one candidate at a time", 8, single),
        ("float32", f"transformers, padded batches of {best} in input order", 1.8, partial(batched, batch=best)),
    ):
        hardware, (model, tokenizer) = Machine(**data.section("machine", precision=precision)), annotator(size)
        placed = machine.place_model(model, hardware, inference=True), tokenizer
        score = partial(ours, *placed, tokens=settings.input_tokens, hardware=hardware)
        yield Comparison(
            path=f"evidence scoring, {precision}",
            peer=peer,
            goal=Goal("speed", bound),
            unit="questions",
            ours=Side(lambda _, score=score: score(requests), units=size.questions),
            theirs=Side(lambda _, theirs=theirs: theirs(requests), units=size.questions),
            same=within(TOLERANCES[precision]),
        )


def candidates(size: Size, settings: EvidenceSettings) -> list[Request]:
    """A request for each span of each question's passage, and one for the whole passage."""
    prompt = data.section("annotator")
    manifest = Manifest("build", Prompt(prompt["prompt"], prompt["lowercase"]), [Model("fold-0", [])], {})
    annotate = Annotate(settings, manifest, lambda index, requests: np.zeros(len(requests)))
    pairs = islice(data.pairs(data.atlas(size.passages)), size.questions)
    return [request for pair in pairs for request in annotate.requests(pair)]


def annotator(size: Size) -> tuple:
    """Model and tokenizer."""
    recipe = Annotator(**data.section("annotator")).build
    texts = [pair.passage.text for pair in data.pairs(data.atlas(size.passages))]
    tokenizer = small_t5.train_tokenizer(texts, vocabulary=recipe.vocabulary)
    torch.manual_seed(recipe.seed)
    return small_t5.new_model(recipe, vocabulary=len(tokenizer)).eval(), tokenizer


def ours(model, tokenizer, requests: Sequence[Request], *, tokens: int, hardware: Machine) -> np.ndarray:
    with machine.autocast(hardware, inference=True):
        return answer_nlls(model, tokenizer, requests, input_tokens=tokens)


@torch.inference_mode()
def one_by_one(model, tokenizer, requests: Sequence[Request], *, tokens: int) -> np.ndarray:
    scores = []
    for source, target in requests:
        inputs = tokenizer(source, truncation=True, max_length=tokens, return_tensors="pt")
        labels = tokenizer(target, return_tensors="pt").input_ids
        scores.append(model(**inputs, labels=labels).loss.item())
    return np.array(scores)


@torch.inference_mode()
def in_input_order(model, tokenizer, requests: Sequence[Request], *, tokens: int, batch: int) -> np.ndarray:
    scores = []
    for start in range(0, len(requests), batch):
        sources, targets = zip(*requests[start : start + batch], strict=True)
        inputs = tokenizer(list(sources), padding=True, truncation=True, max_length=tokens, return_tensors="pt")
        answers = tokenizer(list(targets), padding=True, return_tensors="pt")
        labels = answers.input_ids.masked_fill(answers.attention_mask == 0, -100)
        logits = model(**inputs, labels=labels).logits
        losses = cross_entropy(logits.transpose(1, 2), labels, reduction="none")
        scores += (losses.sum(1) / answers.attention_mask.sum(1)).tolist()
    return np.array(scores)
