"""What scores a question and a passage: encoders by name or folder, loaded models, functions."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from eadpr.library.texts import as_rows, join_title
from eadpr.runtime import machine
from eadpr.runtime.model_folders import has_two_sides
from eadpr.search import late
from eadpr.text import answers
from eadpr.training import encoder
from eadpr.training.config import AUTO, SETTINGS, EncoderSettings
from eadpr.training.self_description import CLASSES, MODEL, _Files, read_class, read_description

JOIN = "{title} {text}"
K1, B = 0.9, 0.4  # BM25's parameters in Pyserini
VECTORS = "SentenceTransformer"  # the class of models that are computed here, a published arm's vectors of tokens too

# Scores of (question, title, text) in parallel lists.
Score = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[float] | np.ndarray]


class Scorer(NamedTuple):
    """`score` returns (N,) for N pairs, `inputs` what is read of each passage: equal inputs cannot be told apart."""

    score: Score
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]]


def check_loadable(model: str | Path) -> str:
    """Return the class of sentence-transformers that scores as a model was made to, before weights are loaded; raises
    ValueError for a model that cannot be scored so, and where sentence-transformers is needed and not installed."""
    try:
        kind = read_class(str(model))
    except ValueError:  # which names the first of other classes alone
        files = _Files(str(model), None, str(model))
        kinds = {str(module.get("type")) for module in files.read("modules.json", list[dict[str, Any]]) or []}
        refused = {kind for kind in kinds if not kind.startswith("sentence_transformers.") or kind.endswith(".Router")}
        if refused != {"pylate.models.Dense.Dense"} or (files.read(MODEL, dict) or {}).get("model_type") != "ColBERT":
            raise
        kind = CLASSES["ColBERT"]  # sentence-transformers takes PyLate's layer for its own, and refuses other classes
    try:
        read_description(str(model))
        return VECTORS
    except ValueError as error:
        if kind == VECTORS or SETTINGS in str(error):
            raise
    if not find_spec("sentence_transformers"):
        raise ValueError(f"{model}, a {kind}, needs sentence-transformers; pip install 'eadpr[sentence-transformers]'")
    return kind


def make_scorer(model: Any, join: str | None = None) -> Scorer:
    if isinstance(model, Scorer):
        return model
    if isinstance(model, str | Path):
        kind, name = check_loadable(model), str(model)
        if kind == VECTORS:
            return encoder_scorer(load_encoders(name), join)
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


def _take(vectors: Any, rows: list[int]) -> Any:
    """Return the rows of an array, of a tensor, which may be sparse, or of a list of matrices, one a text."""
    if isinstance(vectors, list):
        return [vectors[row] for row in rows]
    return vectors[rows] if isinstance(vectors, np.ndarray) else vectors.cpu().index_select(0, torch.tensor(rows))


def _join_all(join: str, titles: Sequence[str], texts: Sequence[str]) -> list[str]:
    return [join_title(join, *pair) for pair in zip(titles, texts, strict=True)]


def load_encoders(name: str, settings: EncoderSettings | None = None) -> encoder.Encoders:
    """Return the encoders of an arm's folder, or any encoder twice, as it says of itself unless `settings` says else.

    Raises ValueError for a model that makes neither one vector of a text nor one of each token.
    """
    folder, two_sided = Path(name), has_two_sides(name)
    model_settings = encoder.settings_of(folder) if two_sided else read_description(name).settings
    settings = settings or AUTO.model_copy(update={"unit": model_settings.unit})
    if two_sided:  # whether its two sides are one encoder is what an arm says of itself
        settings = settings.model_copy(update={"shared": model_settings.shared})
        return encoder.load_pair(folder, settings).to(machine.device())
    text_encoder = encoder.load_pretrained(name, settings, setting="the model").eval()
    return encoder.Encoders(text_encoder, text_encoder).to(machine.device())


def encoder_scorer(encoders: encoder.Encoders, join: str | None) -> Scorer:
    """Return a scorer by the vectors of `load_encoders`; its inputs are the passages' token ids."""

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[int, ...]]:
        if join:
            titles, texts = [""] * len(texts), _join_all(join, titles, texts)
        return [tuple(ids) for ids in encoders.passage.passage_ids(list(titles), list(texts))]

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        distinct_questions, question_of = distinct(questions)
        question_ids = encoders.question.question_ids(distinct_questions)
        return late.score_pairs(encoders, question_ids, question_of, inputs(titles, texts))

    return Scorer(score, inputs)


def _sentence_transformer_scorer(model: Any, join: str) -> Scorer:
    """Return a scorer by a loaded model's own vectors, of whatever kind, and its own similarity."""
    prompts = getattr(model, "prompts", None) or {}
    names = [name for name in ("document", "passage", "corpus") if name in prompts]  # as `encode_document` chooses
    prompt = prompts.get(names[0] if names else getattr(model, "default_prompt_name", None)) or ""

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> Sequence[Hashable]:
        prompted = [prompt + text for text in _join_all(join, titles, texts)]
        if not callable(model.tokenizer):  # a static model, which reads all of a text
            return prompted
        longest = getattr(model[0], "document_length", None) or model.max_seq_length
        ids = model.tokenizer(prompted, truncation=True, max_length=longest).input_ids
        return [tuple(row) for row in ids]

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        distinct_questions, question_of = distinct(questions)
        distinct_texts, passage_of = distinct(_join_all(join, titles, texts))
        question_vectors = _take(model.encode_query(distinct_questions), question_of)
        passage_vectors = _take(model.encode_document(distinct_texts), passage_of)
        return np.asarray(model.similarity_pairwise(question_vectors, passage_vectors))

    return Scorer(score, inputs)


def _cross_encoder_scorer(model: Any, join: str) -> Scorer:
    """Return a scorer by logits. How far the model reads a passage depends on the question: no pair counts as cut."""

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        pairs = list(zip(questions, _join_all(join, titles, texts), strict=True))
        return model.predict(pairs, activation_fn=torch.nn.Identity())

    return Scorer(score, partial(_join_all, join))


def distinct(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Return the distinct values and, for each value, its position among them."""
    positions: dict[Any, int] = {}
    rows = [positions.setdefault(value, len(positions)) for value in values]
    return list(positions), rows


def bm25(corpus: Iterable[Any]) -> Score:
    """Return a scorer by BM25 with the statistics of texts or rows; words are DPR's tokens in lower case, unstemmed."""
    rows = as_rows(corpus)
    documents = [Counter(_terms(f"{row.text('title', empty=True)} {row.text('text', empty=True)}")) for row in rows]
    if not documents:
        raise ValueError("BM25 needs texts to count words in")
    average = sum(counts.total() for counts in documents) / len(documents)
    frequency = Counter(term for counts in documents for term in counts)
    idf = {term: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for term, n in frequency.items()}
    unseen = math.log(1 + (len(documents) + 0.5) / 0.5)

    def score(question: str, title: str, text: str) -> float:
        counts = Counter(_terms(f"{title} {text}"))
        norm = K1 * (1 - B + B * counts.total() / average)
        return sum(idf.get(term, unseen) * counts[term] / (counts[term] + norm) for term in _terms(question))

    return lambda questions, titles, texts: [score(*row) for row in zip(questions, titles, texts, strict=True)]


def _terms(text: str) -> list[str]:
    return [token.lower() for token in answers.tokens(text)]
