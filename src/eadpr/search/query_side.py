"""Query-side fine-tuning: the question encoder learns from rankings of the stored vectors (002, 5.2; Lee et al., 2021).

Every step ranks all passages for its questions with the current encoder: one scan of the vectors, so that a step takes
longer in a larger corpus, but no more memory. All randomness of a step is a function of seed and step.
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
from eadpr.training.encoder import Encoders, TextEncoder, load, save, settings_of
from eadpr.training.state import TrainingState

SMALLEST = 1e-7  # a share of the softmax below it has no gradient (Lee et al., 2021)


class QuerySideInputs(NamedTuple):
    """`vectors` is the folder of the vectors that the passage encoder in the folder `model` made."""

    records: Path
    positives: Path
    model: Path
    vectors: Path


TokenisedQuestions = tuple[list[Question], list[list[int]]]


class Ranker:
    """Ranks all passages for questions. Raises ValueError if a question's vector is not finite."""

    def __init__(self, vectors: Vectors, store: PassageStore, top_k: int) -> None:
        self._vectors = vectors
        self._store = store
        self._top_k = top_k
        self._matcher = AnswerMatcher()

    def __call__(self, questions_BD: np.ndarray, questions: Sequence[Question]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the best passages (B, K), -1 if the corpus is smaller, and which hold an answer."""
        if not np.isfinite(questions_BD).all():
            raise ValueError("the vector of a question is not finite; lower query_side.learning_rate")
        rows = exact.search(self._vectors, questions_BD, self._top_k, devices=machine.devices()).rows
        answering = np.zeros(rows.shape, bool)
        for i, question in enumerate(questions):
            texts = self._store.texts(rows[i][rows[i] >= 0])
            answering[i, : len(texts)] = self._matcher.matches(question.answers, texts, question.answer_kind)
        return rows, answering

    def scores(self, questions_BD: Tensor, rows: np.ndarray) -> Tensor:
        """Return (B, K) float32 dot products with the stored vectors, -inf for row -1."""
        passages = torch.from_numpy(self._vectors.take(np.maximum(rows, 0).ravel())).to(questions_BD.device)
        scores_BK = torch.einsum("bd,bkd->bk", questions_BD, passages.float().view(*rows.shape, -1))
        return scores_BK.masked_fill(torch.from_numpy(rows < 0).to(scores_BK.device), -torch.inf)


def fine_tune(inputs: QuerySideInputs, out: Path, logs: Path, *, settings: QuerySide, hardware: Machine) -> int:
    """Write the model with a new question encoder to the folder `out` and the log to `logs`; returns the steps taken.

    The question encoder is the best on validation, before the first step and after every epoch. A killed run continues
    from its last checkpoint, with the same result. A shared encoder becomes two. Raises ValueError if there are no
    questions to learn from or to validate with, and if the vectors do not belong to the passages.
    """
    store = PassageStore(inputs.records / "passages.parquet")
    vectors = Vectors(inputs.vectors, store.path, inputs.model)
    separate = settings_of(inputs.model).model_copy(update={"shared": False})
    encoder = load(inputs.model, "question", separate).to(machine.device())
    encoder.model.get_input_embeddings().requires_grad_(requires_grad=False)
    loop.set_dropout(encoder, hidden=settings.dropout, attention=settings.attention_dropout)
    training, validation = (_read_role(inputs, role, encoder, settings) for role in ("train", "validation"))
    hashed = [inputs.records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    hashed += [inputs.positives / "folds.parquet", inputs.vectors / MANIFEST, inputs.model]
    return loop.train(
        TrainingState(Encoders(encoder, encoder), settings),  # two references to one encoder count as one
        make_task(training, validation, Ranker(vectors, store, settings.top_k), settings, hardware),
        out,
        logs,
        key=lambda: machine.key(__file__, hashed, settings, hardware),
        save=lambda folder: save(folder, encoder, load(inputs.model, "passage", separate)),
        counts=lambda: {"questions": len(training[0])},
    )


def _read_role(inputs: QuerySideInputs, role: str, encoder: TextEncoder, settings: QuerySide) -> TokenisedQuestions:
    """Return a role's questions of the named sets, with an answer that a text can hold; a sample for validation, of all
    where no validation question belongs to these sets, as with `sets.validation`."""
    path = inputs.positives / "folds.parquet"
    ids = {fold.question_id for fold in tables.rows(path, Fold) if fold.role == role}
    if settings.sets is not None:
        in_sets = ids.intersection(read_question_ids(inputs.records / "question_sets.parquet", settings.sets))
        ids = in_sets if in_sets or role == "train" else ids
    questions = [q for q in read_questions(inputs.records / "questions.parquet", ids) if q.matchable]
    if not questions:
        raise ValueError(f"{path}: no question of role {role} has an answer to look for; change query_side.sets")
    if role == "validation":
        sample = contrastive.sample(len(questions), settings.validation_questions, settings.seed)
        questions = [questions[i] for i in sample]
    return questions, encoder.question_ids([question.question for question in questions])


def make_task(
    training: TokenisedQuestions, validation: TokenisedQuestions, ranker: Ranker, settings: QuerySide, hardware: Machine
) -> loop.Task:
    """Return the training task. A question without an answer in its ranking teaches nothing, nor a step of such."""
    questions, token_ids = training
    schedule = batches.epochs(np.ones(len(questions), np.int64), size=settings.batch_size, seed=settings.seed)
    epoch_steps = len(questions) // min(settings.batch_size, len(questions))

    def lesson(step: int) -> list[int]:
        return [i for i, _ in schedule(step)[1]]

    def backward(state: TrainingState, lesson: list[int]) -> dict[str, float]:
        questions_BD = forward.encode(state.encoders.question, [token_ids[i] for i in lesson], hardware)
        rows_BK, answering_BK = ranker(questions_BD.detach().cpu().numpy(), [questions[i] for i in lesson])
        useful = answering_BK.any(1)
        values = {"skipped": float((~useful).sum())}
        if useful.any():
            useful_BD = questions_BD[torch.from_numpy(useful).to(questions_BD.device)]
            scores_BK = ranker.scores(useful_BD, rows_BK[useful]) * state.encoders.question.settings.loss_scale
            loss = marginal_loss(scores_BK, torch.from_numpy(answering_BK[useful]).to(questions_BD.device))
            loss.backward()
            values["loss"] = loss.item()
        return values

    def validate(state: TrainingState) -> None:
        vectors = embed(state.encoders.question.eval(), validation[1])
        measures = measure(ranker(vectors, validation[0])[1])
        state.log("validation", measures)
        state.keep_if_best(measures["average_rank"])

    return loop.Task(
        "query_side", settings, epoch_steps * settings.epochs, lesson, backward,
        validate=validate, validate_every=epoch_steps, validate_first=True,
    )  # fmt: skip


def marginal_loss(scores_BK: Tensor, answering_BK: Tensor) -> Tensor:
    """Return -log of the softmax's share over K, at least SMALLEST, on passages with an answer; mean over B.

    Every question needs such a passage; missing passages score -inf (002, section 5.2; Lee et al., 2021).
    """
    answering_B = scores_BK.masked_fill(~answering_BK, -torch.inf).logsumexp(1)
    return -(answering_B - scores_BK.logsumexp(1)).clamp(min=math.log(SMALLEST), max=0.0).mean()


def measure(answering_BK: np.ndarray) -> dict[str, float]:
    """Return the mean number of passages above the first with an answer, K without one, and the share with it first."""
    ranks = np.where(answering_BK.any(1), answering_BK.argmax(1), answering_BK.shape[1])
    return {"average_rank": float(ranks.mean()), "top1": float(answering_BK[:, 0].mean())}
