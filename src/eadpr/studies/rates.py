"""How fast this machine encodes and trains with an encoder of random weights, by the functions that the stages call.

What happens once, such as loading a model, is not timed; reading, tokenising and writing are.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from transformers import AutoConfig

from eadpr.runtime import jobs, machine, parallel
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import has_two_sides
from eadpr.search.config import Encode
from eadpr.search.encode import ShardEncoder, chosen, passage_encoder
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage
from eadpr.supervision.pairs import Pair
from eadpr.supervision.spans import without
from eadpr.training import contrastive, loop
from eadpr.training.arm import ArmSettings, prepared
from eadpr.training.base import make_base
from eadpr.training.batches import Batcher
from eadpr.training.config import Base
from eadpr.training.encoder import load, load_pair
from eadpr.training.example_set import ExampleSet, PassageInputs
from eadpr.training.forward import Encoders
from eadpr.training.state import TrainingState

LEAST = 3.0  # seconds that are timed
MOST = 2**16  # passages encoded for it
STEPS = 10**6  # of the training that is timed the beginning of


class Rates(NamedTuple):
    """Passages encoded and tokens trained on per second; mean tokens of passages and questions; of the encoder, the
    dimensions and the number of its weights; the device that was measured."""

    passages: float
    tokens: float
    of_passage: float
    of_question: float
    dim: int
    weights: int
    device: str


def measured(base: Base, arm: ArmSettings, encode: Encode, passages: list[Passage], pairs: list[Pair]) -> Rates:
    """Of encoding the passages and of training on the pairs, with an encoder of the size of `base`."""
    sized = shape(base)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, model = folder / "passages.parquet", folder / "base"
        repeated = islice(cycle(passages), MOST)
        tables.write(path, Passage, (row._replace(id=str(i)) for i, row in enumerate(repeated)))
        make_base(
            path, model, base=sized.model_copy(update={"tokenizer_passages": len(passages)}), settings=arm.encoder
        )
        encoder = load(model, "passage")
        of_passage = encoder.passage_ids(*zip(*((p.title, p.text) for p in passages), strict=True))
        of_question = encoder.question_ids([pair.question.question for pair in pairs])
        weights = sum(parameter.numel() for parameter in encoder.parameters())
        config = encoder.model.config
        encoded = encoding(path, model, encode, arm.machine, folder)
        tables.write(path, Passage, distinct(pairs))
        tokens = training(*started(pairs, path, model, arm), arm)
    # A tokenizer of so few texts may have fewer tokens than asked for.
    weights += (sized.vocabulary - config.vocab_size) * config.hidden_size
    means = (float(np.mean([len(ids) for ids in found])) for found in (of_passage, of_question))
    on_cpu = f"a CPU with {arm.machine.threads} threads"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else on_cpu
    return Rates(encoded, tokens, *means, config.hidden_size, weights, device)


def distinct(pairs: list[Pair]) -> list[Passage]:
    return list({pair.passage.id: pair.passage for pair in pairs}.values())


def shape(base: Base) -> Base:
    """`base` from scratch, with the sizes of the model that it names; of that only config.json is read."""
    if base.model == "scratch":
        return base
    name = f"{base.model}/passage_encoder" if has_two_sides(base.model) else base.model
    try:
        found = AutoConfig.from_pretrained(name, revision=base.revision or "main", trust_remote_code=False)
        sizes = {
            "layers": found.num_hidden_layers,
            "hidden": found.hidden_size,
            "heads": found.num_attention_heads,
            "intermediate": found.intermediate_size,
            "vocabulary": found.vocab_size,
        }
    except (OSError, ValueError, AttributeError) as error:
        said = str(error).partition("\n")[0]
        raise ValueError(
            f"base.model: the sizes of {base.model} cannot be read from its config.json ({said});"
            " run where the hub is reached, or set base.model to a folder that holds this file"
        ) from error
    return base.model_copy(update=sizes | {"model": "scratch", "revision": None})


def encoding(path: Path, model: Path, settings: Encode, hardware: Machine, folder: Path) -> float:
    """Passages per second, by as many workers as the stage has on one card."""
    workers, settings = jobs.WORKERS[machine.device()], chosen(settings)

    def ready(count: int) -> Callable[[], int]:
        window = min(count, settings.window_passages)
        own = settings.model_copy(update={"shard_passages": count, "window_passages": window})
        encoder, make = passage_encoder(model, hardware), partial(ShardEncoder, path, folder, own, hardware)
        return lambda: sum(jobs.run(lambda: encoder, make, range(workers), hardware, cards=1))

    return rate(ready, most=MOST // workers)


def training(state: TrainingState, batcher: Batcher, settings: ArmSettings) -> float:
    """Tokens per second."""

    def ready(questions: int) -> Callable[[], int]:
        size = min(questions, settings.train.batch_size)
        train = settings.train.model_copy(update={"batch_size": size, "accumulation": 1})
        task = contrastive.task(batcher, None, settings._replace(train=train), STEPS)

        def run() -> int:
            tokens, first = 0, state.step
            for lesson in parallel.ahead(task.lesson, range(first, first + questions // size), threads=1):
                loop.take_step(state, task, lesson)
                tokens += sum(len(ids) for batch in lesson for ids in (*batch.questions, *batch.passages))
            return tokens

        return run

    return rate(ready, most=STEPS)


def rate(ready: Callable[[int], Callable[[], int]], *, most: int) -> float:
    """Units per second, between work of a size and of half of it, which leaves out what any size takes. `ready`
    prepares work and gives a function that does it and says how many units that were. Sizes are doubled until the work
    takes LEAST seconds and is clearly longer than its half, or to `most`; where it is not longer even then, what any
    size takes counts too."""
    count = 1
    seconds(ready(count))
    found = seconds(ready(count))
    while True:
        count, half = 2 * count, found
        found = seconds(ready(count))
        longer = found[1] >= 1.5 * half[1]
        if (longer and found[1] >= LEAST) or 2 * count > most:
            less = half if longer else (0, 0.0)
            return (found[0] - less[0]) / (found[1] - less[1])


def seconds(work: Callable[[], int]) -> tuple[int, float]:
    """What it gives, and seconds until the device has done it."""
    synchronize()
    began = time.perf_counter()
    done = work()
    synchronize()
    return done, time.perf_counter() - began


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def started(pairs: list[Pair], passages: Path, base: Path, settings: ArmSettings) -> tuple[TrainingState, Batcher]:
    """A training at its beginning, by the losses that need no placebo; hard negatives are others' positives."""
    encoders = prepared(Encoders(*load_pair(base, settings.encoder)), settings.train)
    store = PassageStore(passages)
    positives = store.rows([pair.passage.id for pair in pairs])
    hard = max(1, settings.train.hard_negatives)
    examples = ExampleSet(
        question_ids=[pair.question.id for pair in pairs],
        questions=[pair.question.question for pair in pairs],
        answers=[pair.question.answers for pair in pairs],
        kinds=[pair.question.answer_kind for pair in pairs],
        positives=positives,
        negatives=list(np.stack([np.roll(positives, len(pairs) // 2 + i) for i in range(hard)], axis=1)),
        others=[positives[:0]] * len(pairs),
        distractors=[[without(pair.passage.text, pair.gold)] for pair in pairs],
        times=np.ones(len(pairs), np.int64),
    )
    batcher = Batcher(
        examples,
        PassageInputs(examples, store, encoders.passage),
        encoders.question,
        hard_negatives=settings.train.hard_negatives,
        mask_false_negatives=settings.loss.masks_false_negatives,
    )
    return TrainingState(encoders, settings.train), batcher
