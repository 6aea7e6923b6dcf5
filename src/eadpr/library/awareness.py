"""Does a retriever know evidence? Answer awareness and its controls (docs/methods.md) of any model that scores."""

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eadpr.evaluation.awareness import AWARENESS, POSITIVE, aware
from eadpr.evaluation.statistics import Interval, paired_bootstrap
from eadpr.library.texts import Texts, joined
from eadpr.report import markdown as tabulate
from eadpr.runtime import machine
from eadpr.search.encode import embed
from eadpr.text import answers as words
from eadpr.training import encoder

# Those that `Texts` has the variants of.
METRICS = (
    "aa", "placebo_words", "controlled_aa", "placebo_inside", "controlled_aa_inside",
    "aa_evidence", "placebo", "controlled_aa_evidence",
)  # fmt: skip
# Of a panel of `plot`, in the order of LABELS.
PLOTTED = {
    "evidence": ("aa_evidence", "placebo", "controlled_aa_evidence"),
    "answer": ("aa", "placebo_words", "controlled_aa"),
}
LABELS = ("awareness", "placebo rate", "controlled awareness with its interval (chance is 50)")
K1, B = 0.9, 0.4  # Pyserini's
JOIN = "{title} {text}"
PUBLISHED = "eadpr.json"  # in a folder of `stages.publish`: how it joins title and text

# Scores of (question, title, text), which stand side by side.
Score = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[float] | np.ndarray]


class Scorer(NamedTuple):
    """`inputs` gives what the model reads of each passage: two texts with the same input it cannot tell apart."""

    score: Score
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]]


class Awareness(NamedTuple):
    """A share of the pairs that count; `interval.n` is their number. `cut` pairs are left out since what was removed
    lies beyond the model's input, `without` since they have no placebo."""

    interval: Interval
    cut: int
    without: int


def awareness(
    model: Any, made: Iterable[Texts], *, join: str | None = None, resamples: int = 10_000, seed: int = 0
) -> dict[str, Awareness]:
    """Each of METRICS that the texts allow, with 95 % intervals over questions.

    `model`: a folder of one of the pipeline's arms, a model of sentence-transformers or its name or folder, a function
    that scores (question, title, text), as `bm25` makes, or a `Scorer`. `join` makes one text of title and text for
    models of sentence-transformers, by default as what `stages.publish` made says, which one that is loaded no longer
    does; else with a space between. Raises
    ValueError where a score is not a finite number.
    """
    given, scorer = list(made), scorer_of(model, join)
    if not given:
        raise ValueError("there is no row to measure with")
    forms = [(i, variant) for i, one in enumerate(given) for variant in one.variants]
    titles, passages = [given[i].title for i, _ in forms], [given[i].variants[variant] for i, variant in forms]
    scores = np.asarray(scorer.score([given[i].question for i, _ in forms], titles, passages), dtype=np.float64)
    if scores.shape != (len(forms),):
        raise ValueError(f"the model gave scores of shape {scores.shape} for {len(forms)} texts")
    if len(bad := np.flatnonzero(~np.isfinite(scores))):
        i, variant = forms[bad[0]]
        raise ValueError(f"the score of row {i}, {variant}, is {scores[bad[0]]}, not a finite number")
    of = dict(zip(forms, zip(scores.tolist(), scorer.inputs(titles, passages), strict=True), strict=True))
    found = {}
    for metric in METRICS:
        of_metric = AWARENESS[metric]
        if any((i, of_metric.below) in of and (i, of_metric.above) in of for i in range(len(given))):
            found[metric] = _measured(metric, of, [one.question for one in given], resamples, seed)
    return found


def _measured(metric: str, of: Mapping, questions: Sequence[str], resamples: int, seed: int) -> Awareness:
    """`questions` are those of the rows; rows with the same one are drawn together."""
    above, below = AWARENESS[metric].above, AWARENESS[metric].below
    differences, asked, cut, without = [], [], 0, 0
    for i, question in enumerate(questions):
        sides = of.get((i, above)), of.get((i, below))
        if sides[1] is None or sides[0] is None:
            without += sides[1] is not None
            continue
        whole = of[i, POSITIVE][1]
        if whole == sides[1][1] or (above != POSITIVE and whole == sides[0][1]):
            cut += 1
        else:
            differences.append(sides[0][0] - sides[1][0])
            asked.append(question)
    values = aware(np.array(differences))
    if not len(values):
        return Awareness(Interval(math.nan, math.nan, math.nan, 0), cut, without)
    _, of_question = _distinct(asked)
    sums, counts = np.bincount(of_question, values), np.bincount(of_question)
    drawn = paired_bootstrap(
        sums, np.zeros_like(sums), counts=counts, resamples=resamples, seed=seed, confidence=0.95
    ).questions
    return Awareness(drawn._replace(n=len(values)), cut, without)


def table(found: Mapping[str, Mapping[str, Awareness]]) -> str:
    """Markdown: a model per row, a metric per column, in %, with intervals and the number of pairs."""
    metrics = [metric for metric in METRICS if any(metric in of for of in found.values())]
    rows = [[name, *(_cell(of.get(metric)) for metric in metrics)] for name, of in found.items()]
    return tabulate.table(["model", *(AWARENESS[metric].title for metric in metrics)], rows)


def _cell(one: Awareness | None) -> str:
    if one is None or not one.interval.n:
        return "–"
    return f"{tabulate.bounded(one.interval)} (n={one.interval.n:,})"


def plot(found: Mapping[str, Mapping[str, Awareness]]) -> str:
    """The text of an SVG file, in %: a model per row, for evidence and for the answer how often the model is aware, the
    rate of placebos, and controlled awareness with its interval, where chance is 50. Raises ValueError where neither
    was measured, ModuleNotFoundError without matplotlib."""
    try:
        from eadpr.report import plots
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"a plot needs {error.name}; pip install {error.name}", name=error.name) from None
    measured = [{metric for metric, of in one.items() if of.interval.n} for one in found.values()]
    panels = {of: metrics for of, metrics in PLOTTED.items() if any(metrics[-1] in one for one in measured)}
    if not panels:
        raise ValueError("there is nothing to plot: no pair of a distractor and a placebo was compared")

    def panel(axes: Any, metrics: tuple[str, ...]) -> None:
        for metric, label, mark in zip(metrics, LABELS, "o^D", strict=True):
            known = [(y, of[metric].interval) for y, of in enumerate(found.values()) if metric in of]
            axes.plot([100 * of.estimate for _, of in known], [y for y, _ in known], mark, label=label)
            if label == LABELS[-1]:
                axes.hlines(
                    *zip(*[(y, 100 * of.low, 100 * of.high) for y, of in known], strict=True),
                    axes.lines[-1].get_color(),
                )
        axes.axvline(50, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlim(-2, 102)
        axes.set_xlabel("pairs (%)")
        axes.set_yticks(range(len(found)), [name.replace("$", r"\$") for name in found])
        axes.tick_params(labelleft=axes.get_subplotspec().is_first_col())
        axes.set_ylim(len(found) - 0.5, -0.5)

    return plots.svg(panels, panel, "Does it know evidence?", LABELS)


def check_loadable(model: str | Path) -> None:
    """Raises ValueError for a model of sentence-transformers where that is not installed."""
    if not _is_arm(model) and not find_spec("sentence_transformers"):
        raise ValueError(
            f"{model} is no folder of an arm; other models need sentence-transformers;"
            " pip install 'eadpr[sentence-transformers]'"
        )


def _is_arm(model: str | Path) -> bool:
    return (Path(model) / encoder.SETTINGS).is_file()


def scorer_of(model: Any, join: str | None = None) -> Scorer:
    if isinstance(model, Scorer):
        return model
    if isinstance(model, str | Path) and _is_arm(model):
        return _arm(Path(model))
    if isinstance(model, str | Path):
        check_loadable(model)
        from sentence_transformers import SentenceTransformer

        name, safe = str(model), {"use_safetensors": True}  # other weights are pickles
        model = SentenceTransformer(name, trust_remote_code=False, model_kwargs=safe)
        join = join or told(name)
    if hasattr(model, "encode_query"):
        return _sentence_transformer(model, join or JOIN)
    if not callable(model):
        raise ValueError(f"a {type(model).__name__} is no model; give a folder, a name, a model or a function")
    return Scorer(model, lambda titles, texts: list(zip(titles, texts, strict=True)))


def told(name: str) -> str | None:
    """How a published model, in a folder or by its Hub name, joins title and text; None where none is published."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    path = Path(name) / PUBLISHED
    if not Path(name).is_dir():
        if "/" not in name:  # of sentence-transformers' own models
            return None
        try:
            path = Path(hf_hub_download(name, PUBLISHED))
        except LocalEntryNotFoundError as error:
            if try_to_load_from_cache(name, PUBLISHED) is not None:  # the hub said before that there is none
                return None
            raise ValueError(
                f"{name}: no hub says whether it has {PUBLISHED}, which tells how it joins title and text; give join"
            ) from error
        except EntryNotFoundError:
            return None
    return json.loads(path.read_text(encoding="utf-8"))["join"] if path.is_file() else None


def of_vectors(
    ask: Callable[[list[Any]], np.ndarray],
    read: Callable[[list[Any]], np.ndarray],
    inputs: Callable[[Sequence[str], Sequence[str]], Sequence[Hashable]],
    similarity: Callable[[Any, Any], Any] = lambda asked, read: np.einsum("fd,fd->f", read, asked, dtype=np.float64),
) -> Score:
    """Scores by the similarity, row by row, of the vectors that `ask` gives questions and `read` gives the `inputs` of
    title and text; each is encoded once."""

    def score(questions: Sequence[str], titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        asked, of_question = _distinct(questions)
        found, of_text = _distinct(inputs(titles, texts))
        vectors = ask(asked), read(found)
        if vectors[0].shape[1] != vectors[1].shape[1]:
            raise ValueError(
                "questions have vectors of {} numbers, passages of {}".format(*(v.shape[1] for v in vectors))
            )
        return np.asarray(similarity(vectors[0][of_question], vectors[1][of_text]))

    return score


def _arm(folder: Path) -> Scorer:
    asking, reading = (encoder.load(folder, side).to(machine.device()) for side in ("question", "passage"))

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[int, ...]]:
        return [tuple(ids) for ids in reading.passage_ids(list(titles), list(texts))]

    def ask(questions: list[str]) -> np.ndarray:
        return embed(asking, asking.question_ids(questions), device=machine.device())

    return Scorer(of_vectors(ask, lambda ids: embed(reading, ids, device=machine.device()), inputs), inputs)


def _sentence_transformer(model: Any, join: str) -> Scorer:
    prompts = getattr(model, "prompts", None) or {}
    names = [name for name in ("document", "passage", "corpus") if name in prompts]  # as `encode_document` looks for it
    prompt = prompts.get(names[0] if names else getattr(model, "default_prompt_name", None)) or ""

    def texts_of(titles: Sequence[str], texts: Sequence[str]) -> list[str]:
        return [joined(join, *pair) for pair in zip(titles, texts, strict=True)]

    def inputs(titles: Sequence[str], texts: Sequence[str]) -> Sequence[Hashable]:
        read = [prompt + text for text in texts_of(titles, texts)]
        if not callable(model.tokenizer):  # of a static model, which reads all of a text
            return read
        ids = model.tokenizer(read, truncation=True, max_length=model.max_seq_length).input_ids
        return [tuple(one) for one in ids]

    score = of_vectors(model.encode_query, model.encode_document, texts_of, model.similarity_pairwise)
    return Scorer(score, inputs)


def _distinct(found: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """What is there, once each, and which of them each one is."""
    place: dict[Any, int] = {}
    rows = [place.setdefault(one, len(place)) for one in found]
    return list(place), rows


def bm25(corpus: Iterable[str]) -> Score:
    """Scores by BM25 with the statistics of these texts; words as DPR's tokeniser finds them, lower case, no stems."""
    counted = [Counter(_terms(one)) for one in corpus]
    if not counted:
        raise ValueError("BM25 needs texts to count words in")
    total, lengths = len(counted), [counts.total() for counts in counted]
    average = sum(lengths) / total
    holding = Counter(term for counts in counted for term in counts)

    def one(question: str, title: str, text: str) -> float:
        counts = Counter(_terms(f"{title} {text}"))
        norm = K1 * (1 - B + B * counts.total() / average)
        return sum(
            math.log(1 + (total - holding[term] + 0.5) / (holding[term] + 0.5)) * counts[term] / (counts[term] + norm)
            for term in _terms(question)
            if counts[term]
        )

    return lambda questions, titles, texts: [one(*each) for each in zip(questions, titles, texts, strict=True)]


def _terms(text: str) -> list[str]:
    return [token.lower() for token in words.tokens(text)]
