"""Stage `annotator`: the QA models that annotate evidence, and which questions each of them may annotate.

No question is annotated by a model that was trained on it. If questions to annotate are training questions too, two
models are trained, each on one half (folds.half), and each annotates the half that it has not seen.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from eadpr.runtime import cache, files, machine, model_folders
from eadpr.runtime.section import Sets
from eadpr.storage import questions, tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Fold
from eadpr.supervision import annotator_lessons, pairs, qa_model, small_t5
from eadpr.supervision.config import Annotator
from eadpr.supervision.manifest import Manifest, Model, Prompt, write_manifest
from eadpr.training import loop, relevance
from eadpr.training.encoder import Encoders
from eadpr.training.pretrained import save_whole
from eadpr.training.state import Checkpoints, TrainingState

TOKENIZER_PASSAGES = 20_000  # a sample of the corpus from which the vocabulary is learnt
Plan = list[list[str]]  # the questions that each model is trained on


def training_plan(training: Sequence[str], annotated: Iterable[str], halves: dict[str, int]) -> Plan:
    """Return the questions to train each model on: one list if no model annotates any of them, else one per half. Model
    k annotates half k, so it learns from the other half and from the training questions that no model annotates."""
    both = set(training) & set(annotated)
    training = [i for i in training if i not in both or i in halves]  # without a half: no positive to learn from
    if not both:
        return [training]
    return [[i for i in training if i not in both or halves[i] != half] for half in (0, 1)]


def build_annotator(
    settings: Annotator, sets: Sets, hardware: machine.Machine, *, records: Path, positives: Path, out: Path,
    model_files: model_folders.ModelFiles = model_folders.NO_FILES,
) -> Manifest:  # fmt: skip
    """Write annotator.json, and models if built, to `out`; return the manifest. `model_files` are annotator.model's."""
    prompt = Prompt(settings.prompt, settings.lowercase)
    source = "none" if settings.kind == "endpoint" else settings.model  # which the stage evidence asks
    if source != "build":
        manifest = Manifest(source, prompt, [], {})
        if source != "none":
            model_folders.check(settings.model, model_files)
            by = settings.by if settings.kind == "relevance" else None
            (relevance.load if by else qa_model.load)(settings.model, revision=settings.revision)
            manifest = Manifest("given", prompt, [Model(settings.model, [])], model_files.sha256, settings.revision, by)
        with files.new_folder(out) as folder:
            write_manifest(folder, manifest)
        return manifest
    plan = _plan(sets, records, positives)
    inputs = [records / f"{name}.parquet" for name in ("passages", "questions", "question_sets")]
    inputs += [positives / f"{name}.parquet" for name in ("positives", "folds")]
    with cache.workspace("annotator", machine.key(__file__, inputs, settings, sets, hardware)) as workspace:
        manifest = Manifest("build", prompt, [Model(f"fold-{k}", sorted(ids)) for k, ids in enumerate(plan)], {})
        with files.new_folder(out) as folder:
            _train(settings, prompt, plan, records, positives, workspace, folder)
            write_manifest(folder, manifest)
        files.discard(workspace)
    return manifest


def _plan(sets: Sets, records: Path, positives: Path) -> Plan:
    question_sets = records / "question_sets.parquet"
    training = questions.read_question_ids(question_sets, sets.annotator)
    annotated = questions.read_question_ids(question_sets, [*sets.learnt, *sets.evaluate])
    folds = tables.read(positives / "folds.parquet", Fold, columns=["question_id", "half"]).to_pydict()
    return training_plan(training, annotated, dict(zip(folds["question_id"], folds["half"], strict=True)))


def _train(
    settings: Annotator, prompt: Prompt, plan: Plan, records: Path, positives: Path, workspace: Path, out: Path
) -> None:
    recipe = settings.build
    texts = _sample(records / "passages.parquet", prompt, recipe.continuation_steps * recipe.batch, recipe.seed)
    tokenizer = small_t5.train_tokenizer(texts[:TOKENIZER_PASSAGES], vocabulary=recipe.vocabulary)
    torch.manual_seed(recipe.seed)
    model = small_t5.new_model(recipe, vocabulary=len(tokenizer)).to(machine.device())
    state = TrainingState(Encoders(model, model), recipe)  # one model: the state keeps equal modules once
    rows = tokenizer(texts, add_special_tokens=False).input_ids
    practice = annotator_lessons.continuing(rows, recipe, prompt, tokenizer)
    for fold, ids in enumerate(plan):
        answerable = [pair for pair in pairs.read_pairs(records, positives / "positives.parquet", ids) if pair.target]
        questions = annotator_lessons.answering(answerable, recipe, prompt, tokenizer)
        task = annotator_lessons.task(practice, questions, recipe, tokenizer.pad_token_id)
        _advance(state, task, workspace / "practised", until=recipe.continuation_steps)  # all folds go on from here
        _advance(state, task, workspace / f"fold-{fold}", until=task.steps)
        save_whole(out / f"fold-{fold}", model.eval(), tokenizer)


def _advance(state: TrainingState, task: loop.Task, folder: Path, *, until: int) -> None:
    """Train to the step `until`, from the checkpoint in `folder` if there is one, and save a checkpoint there."""
    checkpoints = Checkpoints(folder)
    loop.run(state, task, checkpoints, until=until)
    checkpoints.save(state.as_dict())


def _sample(passages: Path, prompt: Prompt, most: int, seed: int) -> list[str]:
    """Return the contexts of passages drawn at random, in random order: `most`, or TOKENIZER_PASSAGES if more."""
    store, rng = PassageStore(passages), np.random.default_rng(seed)
    count = min(len(store), max(most, TOKENIZER_PASSAGES))
    rows = np.sort(rng.choice(len(store), size=count, replace=False))
    texts = list(map(prompt.context, store.titles(rows), store.texts(rows)))
    return [texts[i] for i in rng.permutation(count)]
