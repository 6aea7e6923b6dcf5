"""Query-side fine-tuning: the question encoder learns alone, against rankings of the stored vectors (002, section 5.2,
after Lee et al., 2021).

Every step ranks all passages for its questions with the encoder as it then is: one scan of the vectors, so that a step
takes longer in a larger corpus, but no more memory. All randomness of a step is a function of seed and step.
Shapes: B questions, K passages kept per question, D dimensions.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eadpr.runtime import machine
from eadpr.runtime.machine import Machine
from eadpr.search import exact
from eadpr.search.config import QuerySide
from eadpr.search.encode import embed
from eadpr.search.vectors import MANIFEST, Vectors
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.questions import read_question_ids, read_questions
from eadpr.storage.records import Fold, Question
from eadpr.text.answers import AnswerMatcher
from eadpr.training import batches, contrastive, forward, loop
from eadpr.training import run as stage
from eadpr.training.encoder import TextEncoder, load, save, settings_of
from eadpr.training.forward import Encoders
from eadpr.training.loop import Task
from eadpr.training.state import TrainingState

SMALLEST = 1e-7  # a share of the softmax below it has no gradient (Lee et al., 2021)


class QuerySideInputs(NamedTuple):
    """`vectors`: those of the passage encoder in the folder `model`."""

    records: Path
    positives: Path
    model: Path
    vectors: Path


class TokenisedQuestions(NamedTuple):
    """Parallel lists: questions and their tokens."""

    questions: list[Question]
    ids: list[list[int]]


class Ranking(NamedTuple):
    """(B, K) each, best first: rows of passages, -1 where the corpus is smaller, and whether the passage holds an
    answer to the question."""

    rows: np.ndarray
    held: np.ndarray


class Ranker:
    """Raises ValueError for vectors of questions that are not finite."""

    def __init__(self, stored: Vectors, store: PassageStore, top_k: int) -> None:
        self._stored = stored
        self._store = store
        self._top_k = top_k
        self._matcher = AnswerMatcher()

    def __call__(self, questions_BD: np.ndarray, asked: Sequence[Question]) -> Ranking:
        if not np.isfinite(questions_BD).all():
            raise ValueError(
                "the vector of a question is not finite; lower query_side.learning_rate, or set machine.precision:"
                " float32"
            )
        rows = exact.search(self._stored, questions_BD, self._top_k, devices=machine.devices()).rows
        held = np.zeros(rows.shape, bool)
        for i, question in enumerate(asked):
            texts = self._store.texts(rows[i][rows[i] >= 0])
            held[i, : len(texts)] = self._matcher.matches(question.answers, texts, question.answer_kind)
        return Ranking(rows, held)

    def scores(self, questions_BD: Tensor, rows: np.ndarray) -> Tensor:
        """(B, K) float32 dot products with the stored vectors, -inf for no passage."""
        found = torch.from_numpy(self._stored.take(np.maximum(rows, 0).ravel())).to(questions_BD.device)
        scores_BK = torch.einsum("bd,bkd->bk", questions_BD, found.float().view(*rows.shape, -1))
        return scores_BK.masked_fill(torch.from_numpy(rows < 0).to(scores_BK.device), -torch.inf)


class QueryValidation(NamedTuple):
    """`average_rank`: how many passages stand above the first that holds an answer, K where none of K does. `top1`: the
    share of questions whose first passage holds one."""

    average_rank: float
    top1: float


def fine_tune(inputs: QuerySideInputs, out: Path, logs: Path, *, settings: QuerySide, hardware: Machine) -> int:
    """Write the folder `out`, the model with another question encoder, and the log `logs`; returns the optimiser steps.

    The question encoder is the best on validation, before the first step and after every epoch. What was killed goes on
    where it was last saved, with the same result. A shared encoder becomes two. Raises ValueError where there are no
    questions to learn from or to validate with, and where the vectors are not those of the passages.
    """
    store = PassageStore(inputs.records / "passages.parquet")
    stored = Vectors(inputs.vectors, store.path, inputs.model)
    separate = settings_of(inputs.model).model_copy(update={"shared": False})
    question = load(inputs.model, "question", separate).to(machine.device())
    question.model.get_input_embeddings().requires_grad_(requires_grad=False)
    loop.set_dropout(question, hidden=settings.dropout, attention=settings.attention_dropout)
    learning, held_out = (_asked(inputs, role, question, settings) for role in ("train", "validation"))
    read = [inputs.records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    read += [inputs.positives / "folds.parquet", inputs.vectors / MANIFEST, inputs.model]
    return stage.train(
        TrainingState(Encoders(question, question), settings),  # of the same object it keeps one
        task(learning, held_out, Ranker(stored, store, settings.top_k), settings, hardware),
        out,
        logs,
        key=lambda: machine.key(__file__, read, settings, hardware),
        save=lambda folder: save(folder, question, load(inputs.model, "passage", separate)),
        counts=lambda: {"questions": len(learning.questions)},
    )


def _asked(inputs: QuerySideInputs, role: str, question: TextEncoder, settings: QuerySide) -> TokenisedQuestions:
    """The questions of a role, and of the sets if any are named, whose answers a text can hold; to validate, some.
    Where no validation question is of these sets, they are of `sets.validation`, and all are taken."""
    folds = tables.rows(inputs.positives / "folds.parquet", Fold)
    wanted = {fold.question_id for fold in folds if fold.role == role}
    if settings.sets is not None:
        of_sets = wanted.intersection(read_question_ids(inputs.records / "question_sets.parquet", settings.sets))
        wanted = of_sets if of_sets or role == "train" else wanted
    found = [q for q in read_questions(inputs.records / "questions.parquet", wanted) if q.matchable]
    if not found:
        named = "" if settings.sets is None else f" of query_side.sets {settings.sets}"
        raise ValueError(
            f"{inputs.positives / 'folds.parquet'}: no question of role {role}{named} has an answer to look for;"
            " query-side fine-tuning needs some (validation: raise positives.validation, or name sets.validation)"
        )
    if role == "validation":
        found = [found[i] for i in contrastive.sample(len(found), settings.validation_questions, settings.seed)]
    return TokenisedQuestions(found, question.question_ids([q.question for q in found]))


def task(
    learning: TokenisedQuestions, held_out: TokenisedQuestions, ranker: Ranker, settings: QuerySide, hardware: Machine
) -> Task:
    """A question whose ranking holds no answer teaches nothing; a step of such questions alone changes no weight."""
    once = np.ones(len(learning.questions), np.int64)
    epoch_steps = len(once) // min(settings.batch_size, len(once))

    def lesson(step: int) -> list[int]:
        _, drawn = batches.batch_indices(step, times=once, size=settings.batch_size, seed=settings.seed)
        return [i for i, _ in drawn]

    def backward(state: TrainingState, lesson: list[int]) -> dict[str, float]:
        questions_BD = forward.vectors(state.encoders.question, [learning.ids[i] for i in lesson], hardware)
        ranking = ranker(questions_BD.detach().cpu().numpy(), [learning.questions[i] for i in lesson])
        taught = ranking.held.any(1)
        values = {"skipped": float((~taught).sum())}
        if taught.any():
            found_BD = questions_BD[torch.from_numpy(taught).to(questions_BD.device)]
            held_BK = torch.from_numpy(ranking.held[taught]).to(questions_BD.device)
            loss = marginal_loss(ranker.scores(found_BD, ranking.rows[taught]), held_BK)
            loss.backward()
            values["loss"] = loss.item()
        return values

    def validate(state: TrainingState) -> None:
        question = state.encoders.question.eval()
        ranking = ranker(embed(question, held_out.ids, device=machine.device()), held_out.questions)
        found = measured(ranking.held)
        state.log("validation", found._asdict())
        state.keep_if_best(found.average_rank)

    return Task(
        "query_side", settings, epoch_steps * settings.epochs, lesson, backward,
        validate=validate, validate_every=epoch_steps, validate_first=True,
    )  # fmt: skip


def marginal_loss(scores_BK: Tensor, held_BK: Tensor) -> Tensor:
    """-log of the share, at least SMALLEST, that passages with an answer have of the softmax over K; mean over B.

    Every question has such a passage; scores of no passage are -inf (002, section 5.2; Lee et al., 2021).
    """
    held_B = scores_BK.masked_fill(~held_BK, -torch.inf).logsumexp(1)
    return -(held_B - scores_BK.logsumexp(1)).clamp(min=math.log(SMALLEST), max=0.0).mean()


def measured(held_BK: np.ndarray) -> QueryValidation:
    ranks = np.where(held_BK.any(1), held_BK.argmax(1), held_BK.shape[1])
    return QueryValidation(float(ranks.mean()), float(held_BK[:, 0].mean()))
