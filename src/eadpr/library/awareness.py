"""Does a retriever know evidence? Answer awareness and its controls (docs/methods.md) of any model that scores."""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr.evaluation.awareness import AWARENESS, POSITIVE, aware
from eadpr.evaluation.statistics import Interval, paired_bootstrap
from eadpr.library.texts import Texts, join_title
from eadpr.report import markdown
from eadpr.runtime import machine
from eadpr.search.encode import embed
from eadpr.training import encoder

# The metrics that compare variants of `Texts`.
METRICS = (
    "aa", "placebo_words", "controlled_aa", "placebo_inside", "controlled_aa_inside",
    "aa_evidence", "placebo", "controlled_aa_evidence",
)  # fmt: skip
# The metrics of each panel of `plot`, in the order of LABELS.
PLOTTED = {
    "evidence": ("aa_evidence", "placebo", "controlled_aa_evidence"),
    "answer": ("aa", "placebo_words", "controlled_aa"),
}
LABELS = ("awareness", "placebo rate", "controlled awareness with its interval (chance is 50)")
JOIN = "{title} {text}"
PUBLISHED = "eadpr.json"  # in a folder of `eadpr publish`: how it joins title and text

# Scores of (question, title, text) in parallel lists.
Score = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[float] | np.ndarray]


class Scorer(NamedTuple):
    """`inputs` returns the part of each passage that the model reads: equal inputs it cannot tell apart."""

    score: Score
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]]


class Scored(NamedTuple):
    score: float
    input: Hashable


class Awareness(NamedTuple):
    """A share of the pairs that count; `interval.n` is their number.

    `cut` pairs are left out since their difference lies beyond the model's input, `without` since they have no placebo.
    """

    interval: Interval
    cut: int
    without: int


def awareness(
    model: Any, texts: Iterable[Texts], *, join: str | None = None, resamples: int = 10_000, seed: int = 0
) -> dict[str, Awareness]:
    """Measure each of METRICS that the texts allow, with 95 % intervals over questions.

    `model` is a folder of one of the pipeline's arms, a model of sentence-transformers or its name or folder, a
    function that scores (question, title, text), such as `bm25` makes, or a `Scorer`. `join` makes one text of title
    and text for models of sentence-transformers. By default it is the one that `eadpr publish` wrote into the folder,
    which is not known once a model is loaded; else there is a space between. Raises ValueError if a score is not a
    finite number.
    """
    rows, scorer = list(texts), make_scorer(model, join)
    if not rows:
        raise ValueError("there is no row to measure with")
    keys = [(i, variant) for i, row in enumerate(rows) for variant in row.variants]
    questions, titles = [rows[i].question for i, _ in keys], [rows[i].title for i, _ in keys]
    passages = [rows[i].variants[variant] for i, variant in keys]
    scores = np.asarray(scorer.score(questions, titles, passages), dtype=np.float64)
    if scores.shape != (len(keys),):
        raise ValueError(f"the model gave scores of shape {scores.shape} for {len(keys)} texts")
    if len(bad := np.flatnonzero(~np.isfinite(scores))):
        i, variant = keys[bad[0]]
        raise ValueError(f"the score of row {i}, {variant}, is {scores[bad[0]]}, not a finite number")
    scored: list[dict[str, Scored]] = [{} for _ in rows]
    for (i, variant), score, text in zip(keys, scores.tolist(), scorer.inputs(titles, passages), strict=True):
        scored[i][variant] = Scored(score, text)
    results = {}
    for metric in METRICS:
        if any({AWARENESS[metric].above, AWARENESS[metric].below} <= variants.keys() for variants in scored):
            results[metric] = _measure(metric, scored, [row.question for row in rows], resamples, seed)
    return results


def _measure(
    metric: str, scored: Sequence[Mapping[str, Scored]], questions: Sequence[str], resamples: int, seed: int
) -> Awareness:
    """Measure one metric over rows; rows of the same question are resampled together."""
    differences, counted, cut, without = [], [], 0, 0
    for variants, question in zip(scored, questions, strict=True):
        above, below = variants.get(AWARENESS[metric].above), variants.get(AWARENESS[metric].below)
        if above is None or below is None:
            without += below is not None
        elif variants[POSITIVE].input == below.input or (
            AWARENESS[metric].above != POSITIVE and variants[POSITIVE].input == above.input
        ):
            cut += 1
        else:
            differences.append(above.score - below.score)
            counted.append(question)
    values = aware(np.array(differences))
    if not len(values):
        return Awareness(Interval(math.nan, math.nan, math.nan, 0), cut, without)
    _, question_of_row = _distinct(counted)
    sums, counts = np.bincount(question_of_row, values), np.bincount(question_of_row)
    interval = paired_bootstrap(
        sums, np.zeros_like(sums), counts=counts, resamples=resamples, seed=seed, confidence=0.95
    ).questions
    return Awareness(interval._replace(n=len(values)), cut, without)


def table(models: Mapping[str, Mapping[str, Awareness]]) -> str:
    """Return a Markdown table: a model per row, a metric per column, in %, with intervals and the number of pairs."""
    metrics = [metric for metric in METRICS if any(metric in results for results in models.values())]
    rows = [[name, *(_cell(results.get(metric)) for metric in metrics)] for name, results in models.items()]
    return markdown.table(["model", *(AWARENESS[metric].title for metric in metrics)], rows)


def _cell(result: Awareness | None) -> str:
    if result is None or not result.interval.n:
        return "–"
    return f"{markdown.bounded(result.interval)} (n={result.interval.n:,})"


def plot(models: Mapping[str, Mapping[str, Awareness]]) -> str:
    """Return the text of an SVG file, in %: a model per row, in panels for evidence and for the answer.

    A panel shows how often the model is aware, the rate of placebos, and controlled awareness with its interval, where
    chance is 50. Raises ValueError if neither was measured, ModuleNotFoundError without matplotlib.
    """
    try:
        from eadpr.report import plots
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"a plot needs {error.name}; pip install {error.name}", name=error.name) from None
    with_pairs = {metric for results in models.values() for metric, result in results.items() if result.interval.n}
    panels = {name: metrics for name, metrics in PLOTTED.items() if metrics[-1] in with_pairs}
    if not panels:
        raise ValueError("there is nothing to plot: no pair of a distractor and a placebo was compared")

    def panel(axes: Any, metrics: tuple[str, ...]) -> None:
        for metric, label, mark in zip(metrics, LABELS, "o^D", strict=True):
            rows = [y for y, results in enumerate(models.values()) if metric in results]
            intervals = [results[metric].interval for results in models.values() if metric in results]
            axes.plot([100 * interval.estimate for interval in intervals], rows, mark, label=label)
            if label == LABELS[-1]:
                low, high = ([100 * getattr(interval, end) for interval in intervals] for end in ("low", "high"))
                axes.hlines(rows, low, high, axes.lines[-1].get_color())
        axes.axvline(50, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlim(-2, 102)
        axes.set_xlabel("pairs (%)")
        axes.set_yticks(range(len(models)), [name.replace("$", r"\$") for name in models])
        axes.tick_params(labelleft=axes.get_subplotspec().is_first_col())
        axes.set_ylim(len(models) - 0.5, -0.5)

    return plots.svg(panels, panel, "Does it know evidence?", LABELS)


def check_loadable(model: str | Path) -> None:
    """Raise ValueError for a model of sentence-transformers if that is not installed."""
    if not _is_arm(model) and not find_spec("sentence_transformers"):
        raise ValueError(
            f"{model} is no folder of an arm; other models need sentence-transformers;"
            " pip install 'eadpr[sentence-transformers]'"
        )


def _is_arm(model: str | Path) -> bool:
    return (Path(model) / encoder.SETTINGS).is_file()


def make_scorer(model: Any, join: str | None = None) -> Scorer:
    """Return the scorer of any model that `awareness` takes."""
    if isinstance(model, Scorer):
        return model
    if isinstance(model, str | Path) and _is_arm(model):
        return _arm_scorer(Path(model))
    if isinstance(model, str | Path):
        check_loadable(model)
        from sentence_transformers import SentenceTransformer

        name, safe = str(model), {"use_safetensors": True}  # other weights are pickles
        model = SentenceTransformer(name, trust_remote_code=False, model_kwargs=safe)
        join = join or published_join(name)
    if hasattr(model, "encode_query"):
        return _sentence_transformer_scorer(model, join or JOIN)
    if not callable(model):
        raise ValueError(f"a {type(model).__name__} is no model; give a folder, a name, a model or a function")
    return Scorer(model, lambda titles, texts: list(zip(titles, texts, strict=True)))


def published_join(name: str) -> str | None:
    """Return how a published model, in a folder or at the Hub, joins title and text; None if it is not ours."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    path = Path(name) / PUBLISHED
    if not Path(name).is_dir():
        if "/" not in name:  # one of sentence-transformers' models
            return None
        try:
            path = Path(hf_hub_download(name, PUBLISHED))
        except LocalEntryNotFoundError as error:
            if try_to_load_from_cache(name, PUBLISHED) is not None:  # the cache knows that the Hub has no such file
                return None
            raise ValueError(
                f"{name}: no hub says whether it has {PUBLISHED}, which tells how it joins title and text; give join"
            ) from error
        except EntryNotFoundError:
            return None
    return json.loads(path.read_text(encoding="utf-8"))["join"] if path.is_file() else None


def score_by_vectors(
    encode_questions: Callable[[list[Any]], np.ndarray],
    encode_inputs: Callable[[list[Any]], np.ndarray],
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]],
    similarity: Callable[[Any, Any], Any] = lambda q, p: np.einsum("fd,fd->f", p, q, dtype=np.float64),
) -> Score:
    """Return a function that scores by the similarity of vectors, row by row, and encodes each text once."""

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        distinct_questions, question_of_row = _distinct(questions)
        distinct_inputs, input_of_row = _distinct(inputs(titles, texts))
        question_vectors, passage_vectors = encode_questions(distinct_questions), encode_inputs(distinct_inputs)
        numbers = question_vectors.shape[1], passage_vectors.shape[1]
        if numbers[0] != numbers[1]:
            raise ValueError(f"questions have vectors of {numbers[0]} numbers, passages of {numbers[1]}")
        return np.asarray(similarity(question_vectors[question_of_row], passage_vectors[input_of_row]))

    return score


def _arm_scorer(folder: Path) -> Scorer:
    question_encoder, passage_encoder = (
        encoder.load(folder, side).to(machine.device()) for side in ("question", "passage")
    )

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [tuple(ids) for ids in passage_encoder.passage_ids(list(titles), list(texts))]

    def encode_questions(questions: list[str]) -> np.ndarray:
        return embed(question_encoder, question_encoder.question_ids(questions), device=machine.device())

    def encode_inputs(ids: list[tuple[int, ...]]) -> np.ndarray:
        return embed(passage_encoder, ids, device=machine.device())

    return Scorer(score_by_vectors(encode_questions, encode_inputs, inputs), inputs)


def _sentence_transformer_scorer(model: Any, join: str) -> Scorer:
    prompts = getattr(model, "prompts", None) or {}
    names = [name for name in ("document", "passage", "corpus") if name in prompts]  # as `encode_document` chooses
    prompt = prompts.get(names[0] if names else getattr(model, "default_prompt_name", None)) or ""

    def joined(titles: Sequence[str], texts: Sequence[str]) -> list[str]:
        return [join_title(join, *pair) for pair in zip(titles, texts, strict=True)]

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> Sequence[Hashable]:
        prompted = [prompt + text for text in joined(titles, texts)]
        if not callable(model.tokenizer):  # a static model, which reads all of a text
            return prompted
        ids = model.tokenizer(prompted, truncation=True, max_length=model.max_seq_length).input_ids
        return [tuple(row) for row in ids]

    score = score_by_vectors(model.encode_query, model.encode_document, joined, model.similarity_pairwise)
    return Scorer(score, inputs)


def _distinct(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Return the distinct values and, for each value, its position among them."""
    positions: dict[Any, int] = {}
    rows = [positions.setdefault(value, len(positions)) for value in values]
    return list(positions), rows
