"""What the annotator learns from, as a task of the common training loop: continuing passages first, then answering.

Continuing: given a snippet of a passage and the passage, it writes what follows. Every target token can be found in the
input, so a T5 with random weights learns to look things up and copy them within some hundred steps, which is what
answering from a passage needs. T5's span corruption hides 15 % of the tokens, hardly any of which stands elsewhere in
the input; with it a small model still only guessed likely words when practice ended (docs/log.md).

Answering: it reads passages that lack sentences without the answer. Evidence is sought in passages that lack a sentence
(`evidence`). A model that learnt from whole ones is surprised by many a gap; one that saw gaps, by the gap that counts
(docs/log.md).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from eadpr.runtime import parallel
from eadpr.storage.records import Span
from eadpr.supervision import spans
from eadpr.supervision.answer_nll import IGNORED
from eadpr.supervision.config import Recipe
from eadpr.supervision.pairs import Pair
from eadpr.training.loop import Task
from eadpr.training.padding import pad
from eadpr.training.state import TrainingState

SHORTEST_SNIPPET = 3  # tokens; fewer stand in many places
SHORTEST_PIECE = 8  # tokens of a passage to continue
POOL = 16  # batches that are sorted by length together
ROWS_ON_CPU = 16  # examples per forward pass, so that passes can run side by side

Ids = np.ndarray
Example = tuple[Ids, Ids]  # of the input and of the target


class Phase(NamedTuple):
    """What one phase learns from. `lengths` of the inputs decide which share a batch. `make(index, rng)` makes an
    example anew each time it is used. `stream` tells the random numbers of the phases apart."""

    stream: int
    lengths: np.ndarray
    make: Callable[[int, np.random.Generator], Example]

    def batch(self, number: int, recipe: Recipe) -> list[Example]:
        """Batch `number`, from 0, of an endless training; a pure function of it and of the seed."""
        epoch, place = divmod(number, math.ceil(len(self.lengths) / recipe.batch))
        seed = (recipe.seed, self.stream, epoch)
        chosen = epoch_batches(self.lengths, recipe.batch, np.random.default_rng(seed))[place]
        return [self.make(i, np.random.default_rng((*seed, i))) for i in chosen.tolist()]


def epoch_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Every example once, batches of similar length in random order; one of them may be smaller."""
    order = rng.permutation(len(lengths))
    found: list[np.ndarray] = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        found += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [found[i] for i in rng.permutation(len(found))]


def continuing(rows: Sequence[Sequence[int]], recipe: Recipe, *, asked: Callable[[Ids, Ids], Ids], end: int) -> Phase:
    """Examples from passages, `rows` of token ids; `asked(question, context)` puts ids into the annotator's form.

    Long passages are cut into pieces. Raises ValueError where practice is asked for and no passage is long enough.
    """
    longest = recipe.passage_tokens
    passages = [np.array(row[i : i + longest], dtype=np.int64) for row in rows for i in range(0, len(row), longest)]
    passages = [passage for passage in passages if len(passage) >= SHORTEST_PIECE]
    if recipe.continuation_steps and not passages:
        raise ValueError(
            f"the annotator has nothing to practise reading on: no passage has {SHORTEST_PIECE} tokens; set"
            " annotator.build.continuation_steps to 0"
        )

    def make(index: int, rng: np.random.Generator) -> Example:
        snippet, target = continuation(
            passages[index], snippet=recipe.snippet_tokens, target=recipe.continuation_tokens, rng=rng
        )
        return asked(snippet, passages[index]), np.append(target, end)

    return Phase(1, np.array([len(passage) for passage in passages], dtype=np.int64), make)


def continuation(tokens: Ids, *, snippet: int, target: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """A snippet of `tokens`, of `SHORTEST_SNIPPET` to `snippet` tokens, and the up to `target` tokens that follow it.

    The snippet is shorter where `tokens` would not leave one to follow.
    """
    length = min(int(rng.integers(SHORTEST_SNIPPET, snippet + 1)), len(tokens) - 1)
    start = int(rng.integers(0, max(len(tokens) - length - target, 0) + 1))
    end = start + length
    return tokens[start:end], tokens[end : end + target]


def answering(pairs: Sequence[Pair], *, encoded: Callable[[Pair, str], Ids], target_ids: Callable[[str], Ids]) -> Phase:
    """Examples from pairs with a target. Each time an example is made, other expendable sentences are left out;
    `encoded(pair, context)` gives the input's ids. Raises ValueError where there is no pair."""
    if not pairs:
        raise ValueError(
            "the annotator has nothing to learn question answering from: no question of sets.annotator has an answer"
            " and a positive; mend the set, or set annotator.model to none and leave pseudo out of evidence.strategies"
        )
    spare = [expendable(pair) for pair in pairs]
    targets = [target_ids(pair.target) for pair in pairs]

    def make(index: int, rng: np.random.Generator) -> Example:
        pair = pairs[index]
        return encoded(pair, without_some(pair.passage.text, spare[index], rng)), targets[index]

    return Phase(2, np.array([len(encoded(pair, pair.passage.text)) for pair in pairs], dtype=np.int64), make)


def expendable(pair: Pair) -> list[Span]:
    """The sentences that hold no answer; none where no sentence holds one, since then any may be the evidence."""
    sentences = spans.segment(pair.passage, "sentence")
    holding = set(spans.overlapping(sentences, pair.held))
    return [sentence for i, sentence in enumerate(sentences) if holding and i not in holding]


def without_some(text: str, sentences: list[Span], rng: np.random.Generator) -> str:
    """`text` without some of the sentences: how many, one to all, and which are drawn with equal chances."""
    if not sentences:
        return text
    drawn = rng.choice(len(sentences), size=rng.integers(1, len(sentences) + 1), replace=False)
    return spans.without(text, [sentences[i] for i in drawn])


def task(practice: Phase, questions: Phase, recipe: Recipe, pad_id: int) -> Task:
    """`recipe.continuation_steps` on `practice`, then `recipe.answering_steps` on `questions`, on one schedule."""
    practised = recipe.continuation_steps

    def lesson(step: int) -> list[Example]:
        examples, number = (practice, step) if step < practised else (questions, step - practised)
        return examples.batch(number, recipe)

    def backward(state: TrainingState, lesson: list[Example]) -> dict[str, float]:
        (model,) = state.modules
        return {"loss": add_gradients(model, lesson, pad_id)}

    return Task("annotator.build", recipe, practised + recipe.answering_steps, lesson, backward)


def add_gradients(model: PreTrainedModel, examples: Sequence[Example], pad_id: int) -> float:
    """Add the gradients of the mean loss over the tokens of all targets; returns that loss."""
    parameters = list(model.parameters())
    tokens = sum(len(target) for _, target in examples)
    losses: list[float] = []

    def gradients(part: Sequence[Example]) -> Sequence[Tensor | None]:
        inputs, targets = zip(*part, strict=True)
        tensors = (*pad(inputs, pad_id), pad(targets, IGNORED)[0])
        ids, mask, labels = (tensor.to(model.device) for tensor in tensors)
        mean = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss = mean * (sum(map(len, targets)) / tokens)
        losses.append(loss.item())
        return torch.autograd.grad(loss, parameters, allow_unused=True)

    ordered = sorted(examples, key=lambda example: -len(example[0]))
    size = ROWS_ON_CPU if model.device.type == "cpu" else len(ordered)
    parts = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    parallel.add_gradients(parameters, gradients, parts, together=not parallel.uses_dropout(model))
    return math.fsum(losses)
