"""What scores a question and a passage: encoders by name or folder, loaded models, functions."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from eadpr.library.texts import join_title
from eadpr.runtime import machine
from eadpr.runtime.model_folders import has_two_sides, is_folder
from eadpr.search.encode import embed
from eadpr.training import encoder
from eadpr.training.config import AUTO
from eadpr.training.self_description import read_class, read_description

JOIN = "{title} {text}"
VECTORS = "SentenceTransformer"  # the class of models that make one vector of a text

# Scores of (question, title, text) in parallel lists.
Score = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[float] | np.ndarray]


class Scorer(NamedTuple):
    """`inputs` returns the part of each passage that the model reads: equal inputs it cannot tell apart."""

    score: Score
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]]


def check_loadable(model: str | Path) -> str:
    """Return the class of sentence-transformers that scores as a model was made to, before weights are loaded.

    Raises ValueError for a model that cannot be scored so, and for a class that needs sentence-transformers where that
    is not installed.
    """
    kind = read_class(str(model))
    if kind == VECTORS:
        description = read_description(str(model))
        if not (description.settings.shared or is_folder(str(model))):
            raise ValueError(f"{model} has two encoders; download it (hf download {model}) and give the folder")
    elif not find_spec("sentence_transformers"):
        raise ValueError(
            f"{model} is a {kind}, which needs sentence-transformers; pip install 'eadpr[sentence-transformers]'"
        )
    return kind


def make_scorer(model: Any, join: str | None = None) -> Scorer:
    """Return the scorer of any model that `awareness` takes."""
    if isinstance(model, Scorer):
        return model
    if isinstance(model, str | Path):
        kind, name = check_loadable(model), str(model)
        if kind == VECTORS:
            return _encoder_scorer(name, join)
        import sentence_transformers

        safe = {"use_safetensors": True}  # other weights are pickles
        model = getattr(sentence_transformers, kind)(name, trust_remote_code=False, model_kwargs=safe)
    if hasattr(model, "encode_query"):
        return _sentence_transformer_scorer(model, join or JOIN)
    if hasattr(model, "predict"):
        return _cross_encoder_scorer(model, join or JOIN)
    if not callable(model):
        raise ValueError(f"a {type(model).__name__} is no model; give a folder, a name, a model or a function")
    return Scorer(model, lambda titles, texts: list(zip(titles, texts, strict=True)))


def score_by_vectors(
    encode_questions: Callable[[list[Any]], Any],
    encode_inputs: Callable[[list[Any]], Any],
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]],
    similarity: Callable[[Any, Any], Any] | None = None,
) -> Score:
    """Return a function that scores by the similarity of vectors, by default the dot product, row by row, and encodes
    each text once."""

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        distinct_questions, question_of_row = distinct(questions)
        distinct_inputs, input_of_row = distinct(inputs(titles, texts))
        question_vectors = _take(encode_questions(distinct_questions), question_of_row)
        passage_vectors = _take(encode_inputs(distinct_inputs), input_of_row)
        return np.asarray((similarity or _dot)(question_vectors, passage_vectors))

    return score


def _take(vectors: Any, rows: list[int]) -> Any:
    """Return the rows of an array, of a tensor, which may be sparse, or of a list of matrices, one a text."""
    if isinstance(vectors, list):
        return [vectors[row] for row in rows]
    return vectors[rows] if isinstance(vectors, np.ndarray) else vectors.cpu().index_select(0, torch.tensor(rows))


def _dot(questions_FD: np.ndarray, passages_FD: np.ndarray) -> np.ndarray:
    numbers = questions_FD.shape[1], passages_FD.shape[1]
    if numbers[0] != numbers[1]:
        raise ValueError(f"questions have vectors of {numbers[0]} numbers, passages of {numbers[1]}")
    return np.einsum("fd,fd->f", questions_FD, passages_FD, dtype=np.float64)


def _join_all(join: str, titles: Sequence[str], texts: Sequence[str]) -> list[str]:
    return [join_title(join, *pair) for pair in zip(titles, texts, strict=True)]


def _encoder_scorer(name: str, join: str | None) -> Scorer:
    """Return a scorer by the vectors of an arm's two encoders, or of any one, as the model says of itself."""
    if has_two_sides(name):
        question_encoder, passage_encoder = (encoder.load(Path(name), side) for side in ("question", "passage"))
    else:
        question_encoder = passage_encoder = encoder.load_pretrained(name, AUTO, setting="the model").eval()
    for side in (question_encoder, passage_encoder):
        side.to(machine.device())

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[int, ...]]:
        if join:
            titles, texts = [""] * len(texts), _join_all(join, titles, texts)
        return [tuple(ids) for ids in passage_encoder.passage_ids(list(titles), list(texts))]

    def encode_questions(questions: list[str]) -> np.ndarray:
        return embed(question_encoder, question_encoder.question_ids(questions), device=machine.device())

    def encode_inputs(ids: list[tuple[int, ...]]) -> np.ndarray:
        return embed(passage_encoder, ids, device=machine.device())

    return Scorer(score_by_vectors(encode_questions, encode_inputs, inputs), inputs)


def _sentence_transformer_scorer(model: Any, join: str) -> Scorer:
    """Return a scorer by a loaded model's own vectors, of whatever kind, and its own similarity."""
    prompts = getattr(model, "prompts", None) or {}
    names = [name for name in ("document", "passage", "corpus") if name in prompts]  # as `encode_document` chooses
    prompt = prompts.get(names[0] if names else getattr(model, "default_prompt_name", None)) or ""

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> Sequence[Hashable]:
        prompted = [prompt + text for text in _join_all(join, titles, texts)]
        if not callable(model.tokenizer):  # a static model, which reads all of a text
            return prompted
        ids = model.tokenizer(prompted, truncation=True, max_length=model.max_seq_length).input_ids
        return [tuple(row) for row in ids]

    joined = partial(_join_all, join)
    return Scorer(
        score_by_vectors(model.encode_query, model.encode_document, joined, model.similarity_pairwise), inputs
    )


def _cross_encoder_scorer(model: Any, join: str) -> Scorer:
    """Return a scorer by the logit of a question and a passage read together; how far it reads depends on both, so that
    no pair counts as cut."""

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        pairs = list(zip(questions, _join_all(join, titles, texts), strict=True))
        return model.predict(pairs, activation_fn=torch.nn.Identity())

    return Scorer(score, partial(_join_all, join))


def distinct(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Return the distinct values and, for each value, its position among them."""
    positions: dict[Any, int] = {}
    rows = [positions.setdefault(value, len(positions)) for value in values]
    return list(positions), rows
