"""The training loop of the annotator: every step is a function of the seed and its number, so that a run killed at any
step and started again from its last checkpoint ends with the same bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn.utils import clip_grad_norm_
from transformers import PreTrainedModel

from eadpr import parallel
from eadpr.files import replacing
from eadpr.progress import progress
from eadpr.supervision.answer_nll import IGNORED
from eadpr.supervision.config import Recipe
from eadpr.supervision.continuation import continuation
from eadpr.supervision.qa_model import padded

CHECKPOINT_EVERY = 250  # steps; what a kill can cost, not part of the bytes
POOL = 16  # batches that are sorted by length together
ROWS_ON_CPU = 16  # examples per forward pass, so that passes can run side by side
_CONTINUATION, _ANSWERING, _DROPOUT = 1, 2, 3  # tell the random streams of one seed apart

Ids = np.ndarray
Examples = Callable[[int, int], tuple[Ids, Ids]]  # (epoch, index) -> input ids, target ids


@dataclass(frozen=True)
class Task:
    """Examples to train on for a number of steps; `lengths` of the inputs decide which go into one batch."""

    name: str
    lengths: np.ndarray
    example: Examples
    steps: int
    stream: int


def continuation_task(passages: Sequence[Ids], recipe: Recipe, *, asked: Callable[[Ids, Ids], Ids], end: int) -> Task:
    """`asked(question, context)` puts token ids into the annotator's input form."""

    def example(epoch: int, index: int) -> tuple[Ids, Ids]:
        rng = np.random.default_rng([recipe.seed, _CONTINUATION, epoch, index])
        snippet, target = continuation(
            passages[index], snippet=recipe.snippet_tokens, target=recipe.continuation_tokens, rng=rng
        )
        return asked(snippet, passages[index]), np.append(target, end)

    lengths = np.array([len(passage) for passage in passages], dtype=np.int64)
    return Task("continuing passages", lengths, example, recipe.continuation_steps, _CONTINUATION)


def answering_task(
    lengths: Sequence[int], targets: Sequence[Ids], recipe: Recipe, *, source: Callable[[int, np.random.Generator], Ids]
) -> Task:
    """`source(index, rng)` gives the input ids of an example, of about `lengths[index]`."""

    def example(epoch: int, index: int) -> tuple[Ids, Ids]:
        return source(index, np.random.default_rng([recipe.seed, _ANSWERING, epoch, index])), targets[index]

    return Task("question answering", np.array(lengths, dtype=np.int64), example, recipe.answering_steps, _ANSWERING)


def epoch_batches(lengths: np.ndarray, batch: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Every example once, batches of similar length in random order; the last one of the epoch may be smaller."""
    order = rng.permutation(len(lengths))
    found: list[np.ndarray] = []
    for start in range(0, len(order), POOL * batch):
        pool = order[start : start + POOL * batch]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        found += [pool[i : i + batch] for i in range(0, len(pool), batch)]
    return [found[i] for i in rng.permutation(len(found))]


class Run:
    """A model and its optimiser on the way through tasks, one after the other, on one learning-rate schedule."""

    def __init__(self, model: PreTrainedModel, recipe: Recipe, pad: int) -> None:
        self.model, self.recipe, self.pad, self.step = model, recipe, pad, 0
        self.total = recipe.continuation_steps + recipe.answering_steps
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )

    def learn(self, task: Task, checkpoint: Path) -> None:
        """Train `task.steps` steps, from `checkpoint` where there is one; it then holds the end of the task."""
        if not len(task.lengths):
            raise ValueError(
                f"the annotator has nothing to learn {task.name} from: no question of sets.annotator has an answer and"
                " a positive; mend the set, or set annotator.model to none and leave pseudo out of evidence.strategies"
            )
        begin = self.step
        if checkpoint.exists():
            self.restore(checkpoint)
        batch_of = _batch_finder(task, self.recipe)
        self.model.train()
        with progress(f"annotator, {task.name}", task.steps, "steps", done=self.step - begin) as advance:
            while self.step < begin + task.steps:
                epoch, indices = batch_of(self.step - begin)
                self._take_step([task.example(epoch, int(i)) for i in indices])
                advance(1)
                if self.step == begin + task.steps or (self.step - begin) % CHECKPOINT_EVERY == 0:
                    self.save(checkpoint)

    def _take_step(self, examples: Sequence[tuple[Ids, Ids]]) -> None:
        torch.manual_seed(_seed(self.recipe.seed, _DROPOUT, self.step))
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate * rate(self.step, self.recipe.warmup_steps, self.total)
        self.optimizer.zero_grad()
        loss = self._add_gradients(examples)
        if not math.isfinite(loss):
            raise ValueError(f"the annotator's loss is {loss} at step {self.step}; lower annotator.build.learning_rate")
        clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
        self.optimizer.step()
        self.step += 1

    def _add_gradients(self, examples: Sequence[tuple[Ids, Ids]]) -> float:
        """Of the mean loss over the tokens of all targets, which is returned."""
        parameters = list(self.model.parameters())
        tokens = sum(len(target) for _, target in examples)
        losses: list[float] = []

        def gradients(part: Sequence[tuple[Ids, Ids]]) -> Sequence[torch.Tensor | None]:
            inputs, targets = zip(*part, strict=True)
            mean = self.model(
                input_ids=padded(inputs, self.pad).to(self.model.device),
                attention_mask=padded([[1] * len(source) for source in inputs], 0).to(self.model.device),
                labels=padded(targets, IGNORED).to(self.model.device),
            ).loss
            loss = mean * (sum(map(len, targets)) / tokens)
            losses.append(loss.item())
            return torch.autograd.grad(loss, parameters, allow_unused=True)

        ordered = sorted(examples, key=lambda example: -len(example[0]))
        size = ROWS_ON_CPU if self.model.device.type == "cpu" else len(ordered)
        parts = [ordered[i : i + size] for i in range(0, len(ordered), size)]
        parallel.add_gradients(parameters, gradients, parts, together=not parallel.draws(self.model))
        return math.fsum(losses)

    def save(self, path: Path) -> None:
        tensors = {f"model.{name}": p.detach() for name, p in self.model.named_parameters()}
        for name, parameter in self.model.named_parameters():
            state = self.optimizer.state.get(parameter, {})
            tensors |= {f"optimizer.{key}.{name}": value for key, value in state.items()}
        tensors["step"] = torch.tensor(self.step)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, temporary)

    def restore(self, path: Path) -> None:
        tensors = load_file(path)
        self.step = int(tensors.pop("step"))
        self.optimizer.state.clear()  # else moments of another training stay where the checkpoint has none
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
                if f"optimizer.step.{name}" in tensors:
                    self.optimizer.state[parameter] = {
                        "step": tensors[f"optimizer.step.{name}"].to(parameter.device),  # where fused AdamW wants it
                        "exp_avg": tensors[f"optimizer.exp_avg.{name}"].to(parameter.device),
                        "exp_avg_sq": tensors[f"optimizer.exp_avg_sq.{name}"].to(parameter.device),
                    }


def rate(step: int, warmup: int, total: int) -> float:
    """Multiplier of the learning rate: linear up to 1 in `warmup` steps, then linear down to 0 at `total`."""
    return min((step + 1) / max(warmup, 1), (total - step) / max(total - warmup, 1), 1.0)


def _batch_finder(task: Task, recipe: Recipe) -> Callable[[int], tuple[int, np.ndarray]]:
    per_epoch = len(epoch_batches(task.lengths, recipe.batch, np.random.default_rng(0)))

    @lru_cache(maxsize=1)
    def of_epoch(epoch: int) -> list[np.ndarray]:
        return epoch_batches(task.lengths, recipe.batch, np.random.default_rng([recipe.seed, task.stream, epoch]))

    def batch_of(step: int) -> tuple[int, np.ndarray]:
        epoch = step // per_epoch
        return epoch, of_epoch(epoch)[step % per_epoch]

    return batch_of


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def token_pieces(rows: Sequence[Sequence[int]], longest: int) -> Iterator[Ids]:
    """Rows of token ids cut into pieces of at most `longest`; pieces too short to continue are left out."""
    for row in rows:
        ids = np.array(row, dtype=np.int64)
        yield from (ids[i : i + longest] for i in range(0, len(ids), longest) if len(ids) - i >= 8)
