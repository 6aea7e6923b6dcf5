"""The annotator's training as a task of the common training loop: continuing passages first, then answering.

Continuing: the model reads a passage and a snippet of it, and writes the tokens that follow the snippet. All tokens
are in the input, so a T5 with random weights learns within some hundred steps to look things up and copy them, as it
must to answer from a passage. T5's span corruption hides 15 % of the tokens, and hardly any of them stands elsewhere in
the input; with it a small model still only guessed likely words when practice ended (docs/log.md).

Answering: the model reads passages that lack sentences without the answer, because it will score passages that lack a
sentence (`evidence`). Trained on whole passages any gap surprises it; on gaps, the one that counts (docs/log.md).
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from eadpr.runtime import parallel
from eadpr.storage.records import Span
from eadpr.supervision.answer_nll import IGNORED
from eadpr.supervision.config import Recipe
from eadpr.supervision.manifest import Prompt
from eadpr.supervision.pairs import Pair
from eadpr.text import spans
from eadpr.training.loop import Task
from eadpr.training.padding import pad
from eadpr.training.state import TrainingState

SHORTEST_SNIPPET = 3  # tokens; fewer stand in many places
SHORTEST_PIECE = 8  # tokens of a passage to continue
TARGET_TOKENS = 64  # longer answers are cut
POOL = 16  # batches that are sorted by length together
ROWS_ON_CPU = 16  # examples per forward pass, so that passes can run side by side

Ids = np.ndarray
Example = tuple[Ids, Ids]  # of the input and of the target


class Phase(NamedTuple):
    """The examples of one phase. Inputs of similar `lengths` share a batch. `make(index, rng)` makes a new variant of
    an example each time it is used. `stream` separates the random numbers of the phases."""

    stream: int
    lengths: np.ndarray
    make: Callable[[int, np.random.Generator], Example]

    def batch(self, number: int, recipe: Recipe) -> list[Example]:
        """Return batch `number`, from 0, of an endless training; it depends on the number and the seed only."""
        epoch, place = divmod(number, math.ceil(len(self.lengths) / recipe.batch))
        seed = (recipe.seed, self.stream, epoch)
        chosen = epoch_batches(self.lengths, recipe.batch, np.random.default_rng(seed))[place]
        return [self.make(i, np.random.default_rng((*seed, i))) for i in chosen.tolist()]


def epoch_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return every example once, in batches of similar length in random order; one of them may be smaller."""
    order = rng.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def continuing(
    rows: Sequence[Sequence[int]], recipe: Recipe, prompt: Prompt, tokenizer: PreTrainedTokenizerBase
) -> Phase:
    """Return the phase that continues passages, `rows` of token ids, long ones cut; a snippet replaces the question."""
    longest = recipe.passage_tokens
    passages = [np.array(row[i : i + longest], dtype=np.int64) for row in rows for i in range(0, len(row), longest)]
    passages = [passage for passage in passages if len(passage) >= SHORTEST_PIECE]
    end, parts = tokenizer.eos_token_id, re.split(r"(\{question\}|\{context\})", prompt.cased(prompt.form))
    literals = {part: tokenizer(part, add_special_tokens=False).input_ids for part in parts}

    def make(index: int, rng: np.random.Generator) -> Example:
        passage = passages[index]
        snippet, target = continuation(
            passage, snippet=recipe.snippet_tokens, target=recipe.continuation_tokens, rng=rng
        )
        ids = literals | {"{question}": snippet, "{context}": passage}
        source = np.concatenate([*(ids[part] for part in parts), [end]]).astype(np.int64)
        return source, np.append(target, end)

    return Phase(1, np.array([len(passage) for passage in passages], dtype=np.int64), make)


def continuation(tokens: Ids, *, snippet: int, target: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Draw a snippet of SHORTEST_SNIPPET to `snippet` tokens; return it with the up to `target` tokens that follow it.
    The snippet is shorter if no token could follow it otherwise."""
    length = min(int(rng.integers(SHORTEST_SNIPPET, snippet + 1)), len(tokens) - 1)
    start = int(rng.integers(0, max(len(tokens) - length - target, 0) + 1))
    end = start + length
    return tokens[start:end], tokens[end : end + target]


def answering(pairs: Sequence[Pair], recipe: Recipe, prompt: Prompt, tokenizer: PreTrainedTokenizerBase) -> Phase:
    """Return the phase that answers the questions of pairs with a target. Raises ValueError without a pair. Each time
    an example is made, different expendable sentences are left out of the context."""
    if not pairs:
        raise ValueError(
            "the annotator has nothing to learn question answering from: no question of sets.annotator has an answer"
            " and a positive; mend the set, or set annotator.model to none and leave pseudo out of evidence.strategies"
        )
    spare = [expendable(pair) for pair in pairs]

    def encode(text: str, longest: int) -> Ids:
        return np.array(tokenizer(text, truncation=True, max_length=longest).input_ids)

    def encode_input(pair: Pair, context: str) -> Ids:
        return encode(prompt.input(pair.question.question, pair.passage.title, context), recipe.input_tokens)

    targets = [encode(prompt.cased(pair.target), TARGET_TOKENS) for pair in pairs]

    def make(index: int, rng: np.random.Generator) -> Example:
        pair = pairs[index]
        return encode_input(pair, without_some(pair.passage.text, spare[index], rng)), targets[index]

    lengths = [len(encode_input(pair, pair.passage.text)) for pair in pairs]
    return Phase(2, np.array(lengths, dtype=np.int64), make)


def expendable(pair: Pair) -> list[Span]:
    """Return the sentences without an answer, or none if no sentence has one, since then any may be the evidence."""
    sentences = spans.segment(pair.passage)
    with_answer = spans.overlapping(sentences, pair.answer_spans)
    return [sentence for i, sentence in enumerate(sentences) if with_answer and i not in with_answer]


def without_some(text: str, sentences: list[Span], rng: np.random.Generator) -> str:
    """Return `text` without some of the sentences; their number, one to all, is drawn first, then the sentences."""
    if not sentences:
        return text
    chosen = rng.choice(len(sentences), size=rng.integers(1, len(sentences) + 1), replace=False)
    return spans.without(text, [sentences[i] for i in chosen])


def task(practice: Phase, questions: Phase, recipe: Recipe, pad_id: int) -> Task:
    """Return the task: continuation_steps on `practice`, then answering_steps on `questions`, on one schedule."""
    practice_steps = recipe.continuation_steps

    def lesson(step: int) -> list[Example]:
        if step < practice_steps:
            return practice.batch(step, recipe)
        return questions.batch(step - practice_steps, recipe)

    def backward(state: TrainingState, lesson: list[Example]) -> dict[str, float]:
        (model,) = state.modules
        return {"loss": add_gradients(model, lesson, pad_id)}

    return Task("annotator.build", recipe, practice_steps + recipe.answering_steps, lesson, backward)


def add_gradients(model: PreTrainedModel, examples: Sequence[Example], pad_id: int) -> float:
    """Add the gradients of the mean loss over the tokens of all targets; return that loss."""
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
