"""What a collection holds (EADPR, Table 1), its relations (Sciavolino et al., Table 3.1), what arms take to train
(PiCL, Table 1), what each was trained with, and a study's grid over two settings, as Markdown."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from safetensors import safe_open

from eadpr.evaluation.config import Evaluate
from eadpr.report import markdown as md
from eadpr.report import plots
from eadpr.runtime import files, runs
from eadpr.storage import tables
from eadpr.storage.records import Passage, Positive, Question, SetMember
from eadpr.training.config import Loss, Train

TITLES = ["arm", "form", "L_dpr", "lambda", "tau1", "tau2", "distractors", "hard negatives", "from", "batch", "length"]
Grid = dict[str, pd.DataFrame]  # a metric's shares (0 to 1) by the values of two settings, which name its axes


def collection(records: Path, positives: Path) -> str:
    """Questions of every set, with the passages; `given` and `bm25` say where the first positive comes from."""
    passages = records / "passages.parquet"
    count = tables.count(passages, Passage)
    words = 0
    for batch in tables.batches(passages, Passage, columns=["text"]):
        words += pc.sum(pc.count_substring_regex(batch["text"], r"\S+")).as_py() or 0
    first = tables.read(positives, Positive, ["question_id", "source"]).to_pandas().drop_duplicates("question_id")
    members = set_members(records).merge(first, "left", "question_id")
    found = pd.crosstab(members["name"], members["source"].fillna("none"))
    found = found.reindex(index=members["name"].unique(), columns=["given", "bm25", "none"], fill_value=0)
    found.insert(0, "questions", found.sum(axis=1))
    header = ["question set", "questions", "positive given", "by BM25", "none, or not used"]
    table = md.table(header, [[name, *(f"{n:,}" for n in of_set)] for name, *of_set in found.itertuples()])
    return f"{count:,} passages of {words / count:.0f} words on average.\n\n{table}"


def relations(records: Path) -> str | None:
    """Questions per relation and set, and an example; None where no question has a relation."""
    questions = tables.read(records / "questions.parquet", Question, ["id", "question", "relation"]).to_pandas()
    questions = questions[questions["relation"].fillna("") != ""]
    members = set_members(records).merge(questions, left_on="question_id", right_on="id")
    if members.empty:
        return None
    names = list(members["name"].unique())
    counts = pd.crosstab(members["relation"], members["name"])
    examples = questions.groupby("relation")["question"].first()
    counts = counts.reindex(index=examples.index, columns=names, fill_value=0)
    rows = [[relation, *(f"{n:,}" for n in of_sets), examples[relation]] for relation, *of_sets in counts.itertuples()]
    return md.table(["relation", *names, "example"], rows)


def set_members(records: Path) -> pd.DataFrame:
    """`question_id` and `name`, set/split, of every member of a question set."""
    members = tables.read(records / "question_sets.parquet", SetMember).to_pandas()
    return members.assign(name=members["question_set"] + "/" + members["split"])


def resources(made: Path, values: Mapping[str, Any]) -> str:
    """A row per active arm of the parameters; `made` is data/<collection>. Seconds and memory are those of the last
    training on this machine with the arm's config, if any: DVC may have taken the encoders from its cache."""
    if untrained := [arm for arm in values["active"] if not (made / "models" / arm).is_dir()]:
        raise FileNotFoundError(f"{made / 'models' / untrained[0]} does not exist; train the arm first (dvc repro)")
    took = _trainings()
    rows = []
    for arm in values["active"]:
        config = made / "configs" / arm / "train.json"
        sections = files.read_json(config, "loss", "train")
        loss, train = Loss(**sections["loss"]), Train(**sections["train"])
        steps = files.read_json(made / "training" / arm / "metrics.json", "steps")["steps"]
        model = made / "models" / arm
        each = passages_per_question(loss, train, _levels(made / "examples" / arm))
        found = took.get((str(model), files.sha256(config)))
        rows.append(
            [
                arm,
                f"{_parameters(model / 'passage_encoder') / 1e6:.1f}",
                f"{train.batch_size * train.accumulation:,}",
                f"{each}",
                f"{steps:,}",
                f"{_refreshes(values['active'][arm]['negatives'], values)}",
                f"{found['seconds']:,.0f}" if found else md.NONE,
                f"{found['gpu_memory_gib'] or found['memory_gib']:.1f}" if found else md.NONE,
            ]
        )
    header = ["arm", "M parameters per encoder", "batch", "passages per question", "steps", "refreshes", "s", "GiB"]
    return md.table(header, rows)


def trainings(made: Path, active: Iterable[str]) -> str:
    """The cards, or the CPU, that arms were trained on, as far as it is recorded here; of arms that keep the best of
    the steps that were validated, which they are."""
    took = _trainings()
    configs = {arm: made / "configs" / arm / "train.json" for arm in active}
    found = [took.get((str(made / "models" / arm), files.sha256(config))) for arm, config in configs.items()]
    said = []
    if names := sorted({record["gpu"] or "a CPU" for record in found if record}):
        said.append(f"Trained on {' and '.join(names)}{', the others not recorded' * (None in found)}.")
    best = [arm for arm, config in configs.items() if files.read_json(config, "train")["train"]["keep"] == "best"]
    metrics = {arm: files.read_json(made / "training" / arm / "metrics.json") for arm in best}
    if steps := [f"{arm} {of['kept_step']:,}" for arm, of in metrics.items() if "kept_step" in of]:  # was validated
        said.append(f"Steps that were kept: {', '.join(steps)}.")
    return " ".join(said)


def _trainings() -> dict[tuple[str, str | None], dict]:
    """What the last training into a folder with a config, by its hash, took on this machine."""
    took = {}
    for found in runs.recorded():
        stage, *options = found["command"]
        if stage == "train" and "--out" in options:
            took[options[options.index("--out") + 1], found.get("config")] = found  # records had no config before
    return took


def passages_per_question(loss: Loss, train: Train, levels: int = 1) -> int:
    """That a step encodes; `levels`: distractors that a question has."""
    return 1 + train.hard_negatives + loss.needs_distractors * levels + loss.needs_placebos


def _levels(examples: Path) -> int:
    """Distractors that a question has at most."""
    column = pq.read_table(examples / "examples.parquet", columns=["distractors"])["distractors"]
    return pc.max(pc.list_value_length(column)).as_py() or 0


def _parameters(encoder: Path) -> int:
    with safe_open(encoder / "model.safetensors", "np") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118 (not a mapping)
    return sum(math.prod(shape) for shape in shapes)


def _refreshes(ranking: str, values: Mapping[str, Any]) -> int:
    """Rounds of mining with an earlier arm's model that negatives of a ranking stand for, 0 for BM25's."""
    if ranking in values["active"]:
        return 1 + _refreshes(values["active"][ranking]["negatives"], values)
    made_of = values["denoised"].get(ranking) or values["fused"].get(ranking) or {}
    return max((_refreshes(made_of[edge], values) for edge in ("of", "first", "second") if edge in made_of), default=0)


def check(metrics: Sequence[str], settings: Evaluate) -> None:
    """Raises ValueError for what `evaluate` does not measure, before anything is trained."""
    for metric in metrics:
        if metric not in settings.metrics:
            known = ", ".join(settings.metrics)
            raise ValueError(f"studies.yaml: grid.metrics: {metric!r} is not a metric; known are {known}")


def grid(folder: Path, question_set: str, cells: pd.DataFrame, metrics: Sequence[str]) -> Grid:
    """Means of metrics over the trainings that each of `cells` names; the folder holds their JSON files."""
    names = cells.stack().explode()
    found = {name: files.read_json(folder / f"{name}.json", question_set)[question_set] for name in names}
    for metric in metrics:
        if not all(metric in of_training for of_training in found.values()):
            raise ValueError(
                f"studies.yaml: grid.metrics: not every training has {metric!r}; take it out and run again"
            )
    return {
        metric: cells.map(lambda of_cell, metric=metric: np.mean([found[name][metric] for name in of_cell]))
        for metric in metrics
    }


def grid_tables(found: Grid) -> str:
    """One Markdown table per metric, in per cent."""
    parts = []
    for metric, shares in found.items():
        header = [f"{md.title(metric)} (%), {shares.index.name} ↓ {shares.columns.name} →", *shares.columns]
        body = [[label, *(f"{100 * share:.1f}" for share in of_row)] for label, *of_row in shares.itertuples()]
        parts.append(md.table(header, body))
    return "\n\n".join(parts)


def heat_maps(found: Mapping[str, pd.DataFrame]) -> str:
    """A panel of shares (0 to 1) for each metric, by the values of two settings, which name the axes."""

    def panel(axes: Axes, shares: pd.DataFrame) -> None:
        image = axes.imshow(100 * shares.to_numpy(), cmap="cividis", aspect="auto", origin="lower")
        for (row, column), share in np.ndenumerate(shares.to_numpy()):
            dark = image.norm(100 * share) < 0.5
            axes.text(column, row, f"{100 * share:.1f}", ha="center", va="center", color="white" if dark else "black")
        axes.set_yticks(range(len(shares.index)), shares.index)
        axes.set_xticks(range(len(shares.columns)), shares.columns)
        axes.set_ylabel(shares.index.name)
        axes.set_xlabel(shares.columns.name)
        axes.grid(visible=False)

    return plots.svg({md.title(metric): shares for metric, shares in found.items()}, panel, "%", [])


def trained_with(active: Mapping[str, Mapping[str, Any]], configs: Mapping[str, Any]) -> str:
    """Of the section `active` and the config files of its arms, as `params.configs` makes them; other seeds are left
    out."""
    rows = [_row(arm, edges, configs) for arm, edges in active.items() if "repeats" not in edges]
    return md.table([*TITLES, "rate"], rows)


def _row(arm: str, edges: Mapping[str, Any], configs: Mapping[str, Any]) -> list[str]:
    stages = ("train", "examples", "negatives")
    settings, examples, negatives = (configs[f"{arm}/{stage}.json"] for stage in stages)
    examples = examples["examples"]
    loss, train = settings["loss"], settings["train"]
    mined = negatives["negatives"]
    source = f"{edges['negatives']} (best {mined['keep']})" if mined["kind"] == "ranked" else mined["kind"]
    hard = f"{train['hard_negatives']} of {source}"
    length = f"{train['epochs']} epochs" if train["steps"] is None else f"{train['steps']:,} steps"
    if train["step_factor"] != 1:
        length += f" x {train['step_factor']:g}"
    shares = {form: share for form, share in examples["forms"].items() if share}
    if examples["strategy"] != "none" and list(shares) != ["cut"]:
        forms = " (" + ", ".join(f"{share:g} {form}" for form, share in shares.items()) + ")"
    else:
        forms = ""
    balance = {"none": "", "placebo": ", balanced", "both": ", balanced by half"}[Loss(**loss).balances]
    against = balance + f", placebos x {loss['placebo']:g}" * bool(loss["placebo"])
    return [
        arm,
        loss["form"],
        *(f"{loss[weight]:g}" for weight in ("dpr", "lambda", "tau1", "tau2")),
        examples["strategy"] + forms + against,
        hard if train["hard_negatives"] else "none",
        edges["init"],
        str(train["batch_size"]),
        length,
        f"{train['learning_rate']:g}",
    ]
