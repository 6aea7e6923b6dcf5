"""Training a dual encoder: questions per second, with DPR's loss and with EADPR's.

One shared encoder of the pipeline's default size with random weights, as sentence-transformers trains one model; no
dropout, no masked false negatives, and no truncation, so that both sides learn the same. Columns of a batch: positives,
a negative of each, and for EADPR a distractor of each. The first steps are compared here; each side trains in a process
of its own.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from benchmarks import data
from benchmarks.runner import Comparison, Different, Goal, Side, Worker
from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.storage.passages import PassageStore
from eadpr.supervision.pairs import Pair
from eadpr.text.spans import without
from eadpr.training import contrastive, loop
from eadpr.training.arm import ArmSettings
from eadpr.training.base import make_base
from eadpr.training.batches import Batcher
from eadpr.training.config import Base, EncoderSettings, Loss, Train
from eadpr.training.encoder import folder_of, load_pair
from eadpr.training.example_set import ExampleSet
from eadpr.training.state import Checkpoints, TrainingState


class Size(NamedTuple):
    passages: int
    batch: int
    steps: int
    base: dict[str, int]  # changes of the section `base`


FULL = Size(passages=2_100, batch=32, steps=20, base={})
QUICK = Size(passages=210, batch=4, steps=2, base={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 600})
TOKENS = 256  # nothing is longer
PROCESSES = "benchmarks.training_processes"
TOLERANCE = 1e-4  # of the loss, and of the norm of all gradients
DPR = {"lambda": 0.0, "tau1": 0.0, "tau2": 0.0}

FirstStep = tuple[float, dict[str, Tensor]]  # loss, gradients by parameter


class Start(NamedTuple):
    """Weights and optimiser, settings, and what tokenises the questions, which is part of the training."""

    state: TrainingState
    settings: ArmSettings
    batcher: Callable[[], Batcher]


def comparisons(size: Size, folder: Path) -> Iterator[Comparison]:
    records = data.records(data.atlas(size.passages), folder)
    base = Base(**data.section("base", **size.base))
    make_base(records / "passages.parquet", folder / "base", base=base, settings=encoder_settings())
    for path, peer, loss, columns in (
        ("training, DPR's loss", "MultipleNegativesRankingLoss", DPR, 3),
        ("training, EADPR's loss", "the loss as its custom loss", {}, 4),
    ):
        both = {"folder": folder, "size": size._asdict()}
        with (
            Worker(PROCESSES, "ours", loss=loss, **both) as ours,
            Worker(PROCESSES, "theirs", columns=columns, **both) as theirs,
        ):
            yield _comparison(load_setup(size, folder), path, peer, loss, columns, ours, theirs)


def encoder_settings(**changes: object) -> EncoderSettings:
    both = {"shared": True, "question_tokens": TOKENS, "passage_tokens": TOKENS}
    return EncoderSettings(**data.section("encoder", **both, **changes))


class Setup(NamedTuple):
    size: Size
    records: Path
    base: Path
    pairs: list[Pair]


def load_setup(size: Size, folder: Path) -> Setup:
    """Return what `comparisons` put into the folder."""
    return Setup(size, folder / "records", folder / "base", _distinct(data.pairs(data.atlas(size.passages)), size))


def _distinct(pairs, size: Size) -> list[Pair]:
    """Pairs of different questions, as many as the steps take."""
    chosen = list(islice(({pair.question.question: pair for pair in pairs}).values(), size.batch * size.steps))
    if len(chosen) < size.batch * size.steps:
        raise ValueError(f"{size.passages} passages give {len(chosen)} questions, {size.batch * size.steps} are needed")
    return chosen


def _comparison(
    setup: Setup, path: str, peer: str, loss: dict[str, float], columns: int, ours: Worker, theirs: Worker
) -> Comparison:
    return Comparison(
        path=path,
        peer=f"sentence-transformers' trainer, {peer}",
        goal=Goal("speed", 1.4),
        unit="questions",
        ours=_side(ours, setup.size, lambda: first_step(started(setup, loss), setup.size)),
        theirs=_side(theirs, setup.size, lambda: their_first_step(setup, columns_of(setup, columns))),
        same=same,
    )


def _side(training: Worker, size: Size, first: Callable[[], FirstStep]) -> Side:
    """`training` makes ready and trains in turns."""
    return Side(lambda _: training(), ready=training, result=first, units=size.batch * size.steps)


def negative(setup: Setup, i: int) -> Pair:
    """Return the pair whose passage the negative of question i is: another question's, outside of its batch."""
    return setup.pairs[(i + setup.size.batch) % len(setup.pairs)]


def distractor(pair: Pair) -> str:
    return without(pair.passage.text, pair.gold)


def columns_of(setup: Setup, count: int) -> dict[str, list]:
    """Return what sentence-transformers trains on; a passage is a pair of title and text."""
    rows = list(enumerate(setup.pairs))
    columns = {
        "anchor": [pair.question.question for pair in setup.pairs],
        "positive": [[pair.passage.title, pair.passage.text] for pair in setup.pairs],
        "negative": [[p.title, p.text] for p in (negative(setup, i).passage for i, _ in rows)],
        "distractor": [[pair.passage.title, distractor(pair)] for pair in setup.pairs],
    }
    return dict(islice(columns.items(), count))


def started(setup: Setup, changes: dict[str, float], **encoder: object) -> Start:
    loss = Loss(**data.section("loss", mask_false_negatives=False, **changes))
    settings = encoder_settings(**encoder)
    encoders = load_pair(setup.base, settings)
    loop.set_dropout(encoders.passage, hidden=0.0, attention=0.0)
    sizes = {"batch_size": setup.size.batch, "epochs": 1, "hard_negatives": 1, "validation_questions": 0}
    train = Train(**data.section("train", **sizes))
    store = PassageStore(setup.records / "passages.parquet")
    examples = ExampleSet(
        question_ids=[pair.question.id for pair in setup.pairs],
        questions=[pair.question.question for pair in setup.pairs],
        answers=[pair.question.answers for pair in setup.pairs],
        kinds=[pair.question.answer_kind for pair in setup.pairs],
        positives=store.rows([pair.passage.id for pair in setup.pairs]),
        negatives=pa.array(
            store.rows([negative(setup, i).passage.id for i in range(len(setup.pairs))])[:, None].tolist()
        ),
        other_positives=pa.array([[]] * len(setup.pairs), pa.list_(pa.int32())),
        distractors=[distractor(pair) if loss.needs_distractors else None for pair in setup.pairs],
        times=np.ones(len(setup.pairs), np.int64),
    )

    hardware = Machine(**data.section("machine"))
    batcher = partial(Batcher, examples, store, encoders, loss, train)
    return Start(TrainingState(encoders, train), ArmSettings(loss, train, settings, hardware), batcher)


def train(start: Start, *, steps: int) -> None:
    batcher = start.batcher()
    task = contrastive.task(batcher, batcher, start.settings, steps)
    with tempfile.TemporaryDirectory() as folder:
        loop.run(start.state, task, Checkpoints(Path(folder)))


def first_step(start: Start, size: Size) -> FirstStep:
    state, settings, batcher = start
    batch = batcher().first(range(size.batch))
    if truncated := batch.counts.get("truncated"):
        raise ValueError(f"{truncated} distractors are their positives after truncation; raise TOKENS")
    state.encoders.passage.train()
    terms = contrastive.add_gradient(state.encoders, batch, settings)
    return float(terms[0]), _gradients(state.encoders.passage.model)


def their_model(setup: Setup) -> Any:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder_of(setup.base, "passage")), device=machine.device())
    loop.set_dropout(model, hidden=0.0, attention=0.0)
    return model


def their_loss(model: Any, columns: int) -> torch.nn.Module:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.util import dot_score

    if columns == 3:
        return MultipleNegativesRankingLoss(model, scale=1.0, similarity_fct=dot_score)
    return EadprLoss(model)


class EadprLoss(torch.nn.Module):
    """EADPR's loss with lambda, tau1 and tau2 of 1, as one would write it for sentence-transformers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Sequence[dict[str, Tensor]], labels: Tensor | None) -> Tensor:
        from sentence_transformers.base.losses.merged_forward import embed_columns

        questions, positives, negatives, distractors = embed_columns(self.model, features)
        scores = questions @ torch.cat([positives, negatives]).T
        of_distractors = questions @ distractors.T
        positive, own_distractor = scores.diagonal(), of_distractors.diagonal()
        is_positive = torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
        negative_scores = scores.masked_fill(is_positive, -torch.inf)
        dpr = torch.cat([scores, own_distractor[:, None]], dim=1).logsumexp(1) - positive
        hard_negative = torch.stack([positive, own_distractor]).logsumexp(0) - positive
        pseudo_positive = torch.cat([negative_scores, of_distractors], dim=1).logsumexp(1) - own_distractor
        return (dpr + hard_negative + pseudo_positive).mean()


def their_first_step(setup: Setup, columns: dict[str, list]) -> FirstStep:
    model = their_model(setup).train()
    features = [model.preprocess(column[: setup.size.batch]) for column in columns.values()]
    loss = their_loss(model, len(columns))(features, None)
    loss.backward()
    return loss.item(), _gradients(model[0].auto_model)


def new_trainer(setup: Setup, columns: dict[str, list]) -> Any:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    settings = Train(**data.section("train"))
    model = their_model(setup)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(setup.base.parent / "trainer"),
        per_device_train_batch_size=setup.size.batch,
        max_steps=setup.size.steps,
        learning_rate=settings.learning_rate,
        max_grad_norm=settings.max_grad_norm,
        weight_decay=settings.weight_decay,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        use_cpu=machine.device() == "cpu",
    )
    return SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_dict(columns), loss=their_loss(model, len(columns))
    )


def _gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.detach() for name, p in model.named_parameters() if p.grad is not None}


def same(ours: FirstStep, theirs: FirstStep) -> str:
    """Equal first-step loss, and gradients."""
    (our_loss, our_gradients), (their_loss, their_gradients) = ours, theirs
    if our_gradients.keys() != their_gradients.keys():
        raise Different(f"gradients of other parameters: {sorted(our_gradients.keys() ^ their_gradients.keys())}")
    loss = abs(our_loss - their_loss) / abs(their_loss)
    apart = sum((our_gradients[name] - their_gradients[name]).square().sum() for name in our_gradients)
    gradient = float((apart / sum(g.square().sum() for g in their_gradients.values())).sqrt())
    if not max(loss, gradient) <= TOLERANCE:
        raise Different(
            f"first-step losses are {our_loss:.6f} and {their_loss:.6f}, gradients differ by {gradient:.1e} of their"
            f" norm; allowed is {TOLERANCE:.0e}"
        )
    return f"first-step loss differs by {loss:.0e}, gradients by {gradient:.0e} of their norm"
