"""What one GPU does with models of BERT-base's and T5-base's size and random weights: `python -m benchmarks.gpu`.

Encoding, training, evidence scoring (each with its share of the rate at which this device multiplies bfloat16 matrices)
and exact search, by the functions that the stages call. Operations are those of true tokens (`flops`). What happens
once, loading a model or making the first step, is not timed; reading, tokenising and writing are. Without a GPU it runs
too, which shows that it works and says nothing about speed.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import typer

GOALS = {"encoding": 0.60, "training": 0.45, "evidence": 0.45}  # shares of the measured rate
SEARCH_SECONDS = 5.0  # at the full size
HEAD = """| path | work | seconds (least – highest) | per second | TFLOP/s | share of the measured rate | goal |
|---|---|--:|--:|--:|--:|---|"""


class Size(NamedTuple):
    """`shape` is that of both models; T5 has `layers` in encoder and decoder each."""

    passages: int
    distinct: int  # texts that the passages repeat
    steps: int
    batch: int
    questions: int  # whose evidence is scored
    rows: int  # of vectors searched
    queries: int
    depth: int
    shape: dict[str, int]
    vocabulary: tuple[int, int]  # of BERT and T5
    shard: int  # passages per file
    window: int
    token_budget: int
    pairs: int  # per shard of evidence
    matrix: int
    repeats: int


FULL = Size(
    passages=524_288, distinct=32_768, steps=40, batch=128, questions=6_000, rows=21_000_000, queries=3_610, depth=100,
    shape={"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3_072}, vocabulary=(30_522, 32_128),
    shard=32_768, window=16_384, token_budget=131_072, pairs=1_000, matrix=8_192, repeats=3,
)  # fmt: skip
QUICK = Size(
    passages=48, distinct=30, steps=2, batch=4, questions=6, rows=300, queries=5, depth=10,
    shape={"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64}, vocabulary=(600, 600), shard=16, window=8,
    token_budget=1_024, pairs=2, matrix=64, repeats=1,
)  # fmt: skip


class Measured(NamedTuple):
    """Seconds of the repeats; `flops` of each, None where none are counted."""

    path: str
    work: str
    units: int
    unit: str
    seconds: list[float]
    flops: int | None
    goal: str


def main(
    paths: list[str] = typer.Argument(None, help="Of encoding, training, evidence, search; all by default."),
    quick: bool = typer.Option(False, help="Toy sizes and models."),
    sizes: list[str] = typer.Option([], "--size", help="NAME=NUMBER of `Size`, as rows=1000; again for each."),
    folder: Path = typer.Option(None, help="Where to write models and vectors; a temporary folder by default."),
) -> None:
    changes = {name: int(number) for name, number in (option.split("=") for option in sizes)}
    size = (QUICK if quick else FULL)._replace(**changes)
    if unknown := set(paths or ()) - set(PATHS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: known are {', '.join(PATHS)}")
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        os.environ["EADPR_CACHE"] = str(Path(temporary) / "cache")
        settled()
        rate = matrix_rate(size.matrix)
        typer.echo(about(rate))
        typer.echo(HEAD)
        for name in paths or PATHS:
            typer.echo(f"{name} …", err=True)
            typer.echo(line(PATHS[name](size, Path(temporary) / name), rate))


def settled():
    """The settings of params.yaml, but not bound to one order of sums; settled."""
    from benchmarks import data
    from eadpr.runtime.machine import Machine, settle

    hardware = Machine(**data.section("machine", deterministic=False))
    settle(hardware)
    return hardware


def matrix_rate(size: int, repeats: int = 20) -> float:
    """Floating-point operations per second of products of two bfloat16 matrices of random numbers; the median."""
    import torch

    from eadpr.runtime import machine

    first, second = (torch.randn(size, size, device=machine.device(), dtype=torch.bfloat16) for _ in range(2))
    times = [seconds(lambda: first @ second) for _ in range(3 + repeats)][3:]
    return 2 * size**3 / statistics.median(times)


def seconds(work: Callable[[], object]) -> float:
    """Time the work until the device has done it."""
    import torch

    def wait() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def texts(count: int) -> list:
    """Pairs of atlas, with passages as long as Wikipedia's."""
    from benchmarks import data

    return list(data.long_pairs(data.atlas(count), count))


def write_base(passages: Path, folder: Path, size: Size, **settings: object) -> None:
    """Two encoders of the asked shape, both with the same random weights."""
    from benchmarks import data
    from eadpr.training.base import make_base
    from eadpr.training.config import Base, EncoderSettings

    base = Base(**data.section("base", vocabulary=size.vocabulary[0], **size.shape))
    options = {"pooling": "cls", "question_tokens": 256, "passage_tokens": 256} | settings
    make_base(passages, folder, base=base, settings=EncoderSettings(**data.section("encoder", **options)))


def encoding(size: Size, folder: Path) -> Measured:
    from benchmarks import flops
    from eadpr.search.config import Encode
    from eadpr.search.encode import encode_shards, load_passage_encoder
    from eadpr.search.vectors import shard_ranges
    from eadpr.storage import tables
    from eadpr.storage.records import Passage
    from eadpr.training import encoder as text_encoder

    distinct = [pair.passage for pair in texts(min(size.distinct, size.passages))]
    path = folder / "passages.parquet"
    repeated = islice(cycle(distinct), size.passages)
    tables.write(path, Passage, (passage._replace(id=str(i)) for i, passage in enumerate(repeated)))
    write_base(path, folder / "base", size)
    encoder = text_encoder.load(folder / "base", "passage")
    lengths = [len(ids) for ids in encoder.passage_ids(*zip(*((p.title, p.text) for p in distinct), strict=True))]
    settings = Encode(shard_passages=size.shard, window_passages=size.window, token_budget=size.token_budget)
    (folder / "kept").mkdir()
    load = partial(load_passage_encoder, folder / "base", settled())
    make = partial(encode_shards, path, folder / "kept", settings, settled())
    times = timed_shards(load, make, range(len(shard_ranges(size.passages, size.shard))), size.repeats)
    model = flops.bert(encoder.model.config)
    operations = flops.encoded(model, islice(cycle(lengths), size.passages))
    work = f"passages of {statistics.mean(lengths):.0f} tokens"
    goal = f"≥ {GOALS['encoding']:.0%}; 27,000 a second are 21 M in 13 minutes"
    return Measured("encoding", work, size.passages, "passages", times, operations, goal)


def timed_shards(load: Callable, make: Callable, numbers: range, repeats: int) -> list[float]:
    """All shards, with a model that is loaded and has made a shard before."""
    from eadpr.runtime import jobs

    hardware, loaded = settled(), load()
    sum(make(loaded)(numbers[0]))

    def once() -> None:
        assert sum(jobs.make_shards(lambda: loaded, make, numbers, hardware))

    return [seconds(once) for _ in range(repeats)]


def training(size: Size, folder: Path) -> Measured:
    from benchmarks import flops
    from eadpr.training import loop
    from eadpr.training.state import Checkpoints

    state, task, batcher = started(size, folder)
    os.environ["EADPR_CHECKPOINT_SECONDS"] = "1e9"
    checkpoints = Checkpoints(folder)
    loop.run(state, task._replace(steps=2), checkpoints)
    times = []
    for _ in range(size.repeats):
        steps = state.step + size.steps
        times.append(seconds(partial(loop.run, state, task._replace(steps=steps), checkpoints)))
    model = flops.bert(state.encoders.passage.model.config)
    batches = [batcher.sampled(number) for number in range(state.step - size.steps, state.step)]
    lengths = [len(ids) for batch in batches for ids in (*batch.questions, *batch.passages)]
    units = size.batch * size.steps
    work = f"questions, batches of {size.batch} with {len(lengths) / len(batches):.0f} texts"
    goal = f"≥ {GOALS['training']:.0%}"
    return Measured("training", work, units, "questions", times, flops.trained(model, lengths), goal)


def started(size: Size, folder: Path) -> tuple:
    """State, task and batcher of a training with EADPR's loss; a question's BM25 negative is another's positive."""
    import numpy as np
    import pyarrow as pa

    from benchmarks import data
    from eadpr.storage import tables
    from eadpr.storage.passages import PassageStore
    from eadpr.storage.records import Passage
    from eadpr.text.spans import without
    from eadpr.training import contrastive
    from eadpr.training.arm import ArmSettings, prepare_encoders
    from eadpr.training.batches import Batcher
    from eadpr.training.config import Loss, Train
    from eadpr.training.encoder import load_pair, settings_of
    from eadpr.training.example_set import ExampleSet
    from eadpr.training.state import TrainingState

    pairs = texts(size.batch * size.steps)
    path, base = folder / "passages.parquet", folder / "base"
    tables.write(path, Passage, {pair.passage.id: pair.passage for pair in pairs}.values())
    write_base(path, base, size)
    train = Train(
        **data.section("train", batch_size=size.batch, steps=None, learning_rate=2e-5, validation_questions=0)
        | {"dropout": 0.1, "attention_dropout": 0.1}
    )
    settings = ArmSettings(Loss(**data.section("loss")), train, settings_of(base), settled())
    encoders = prepare_encoders(load_pair(base, settings.encoder), settings)
    store = PassageStore(path)
    positives = store.rows([pair.passage.id for pair in pairs])
    negatives = [np.roll(positives, len(pairs) // 2 + i) for i in range(max(1, train.hard_negatives))]
    examples = ExampleSet(
        question_ids=[pair.question.id for pair in pairs],
        questions=[pair.question.question for pair in pairs],
        answers=[pair.question.answers for pair in pairs],
        kinds=[pair.question.answer_kind for pair in pairs],
        positives=positives,
        negatives=pa.array(np.stack(negatives, axis=1).tolist()),
        other_positives=pa.array([[]] * len(pairs), pa.list_(pa.int32())),
        distractors=[without(pair.passage.text, pair.gold) for pair in pairs],
        times=np.ones(len(pairs), np.int64),
    )
    batcher = Batcher(examples, store, encoders, settings.loss, train)
    return TrainingState(encoders, train), contrastive.task(batcher, batcher, settings, 0), batcher


def evidence(size: Size, folder: Path) -> Measured:
    import torch

    from benchmarks import data, flops
    from eadpr.storage import tables
    from eadpr.supervision import answer_nll, qa_model, small_t5
    from eadpr.supervision.config import Annotator, EvidenceSettings
    from eadpr.supervision.evidence import Annotate, annotate_shards
    from eadpr.supervision.manifest import Manifest, Model, Prompt, write_manifest
    from eadpr.supervision.pairs import Pair
    from eadpr.training.pretrained import save_whole

    pairs = texts(size.questions)
    annotator = data.section("annotator")
    shape = {"width": size.shape["hidden"], "heads": size.shape["heads"], "layers": size.shape["layers"]}
    recipe = Annotator(**annotator).build.model_copy(update=shape | {"feed_forward": size.shape["intermediate"]})
    tokenizer = small_t5.train_tokenizer((pair.passage.text for pair in pairs), vocabulary=size.vocabulary[1])
    torch.manual_seed(recipe.seed)
    model = small_t5.new_model(recipe, vocabulary=max(size.vocabulary[1], len(tokenizer)))
    save_whole(folder / "annotator" / "fold-0", model, tokenizer)
    manifest = Manifest("build", Prompt(annotator["prompt"], annotator["lowercase"]), [Model("fold-0", [])], {})
    write_manifest(folder / "annotator", manifest)

    settings = EvidenceSettings(**data.section("evidence", strategies=["pseudo"]))
    shards = [folder / f"{first}.parquet" for first in range(0, len(pairs), size.pairs)]
    pairs_path = folder / "pairs.parquet"
    tables.write(pairs_path, Pair, pairs)
    load = partial(qa_model.load_scorers, folder / "annotator", manifest, settled(), [0])
    make = partial(annotate_shards, pairs_path, manifest, settings, settled(), None, shards, size.pairs)
    times = timed_shards(load, make, range(len(shards)), size.repeats)
    annotate = Annotate(settings, manifest, lambda *_: [])
    keys = set()  # equal requests of a shard are scored once, and hardly any are equal across shards
    for pair in pairs:
        sources, targets = zip(*annotate.requests(pair), strict=True)
        cut = tokenizer(list(sources), truncation=True, max_length=settings.input_tokens).input_ids
        aimed = tokenizer(list(targets), truncation=True, max_length=answer_nll.TARGET_TOKENS).input_ids
        keys |= {(tuple(source), tuple(target)) for source, target in zip(cut, aimed, strict=True)}
    lengths = [(len(source), len(target)) for source, target in keys]
    operations = flops.scored(flops.t5(model.config), model.config.vocab_size, lengths)
    tokens = statistics.mean(source for source, _ in lengths)
    work = f"questions, {len(keys) / len(pairs):.1f} candidates each of {tokens:.0f} tokens"
    goal = f"≥ {GOALS['evidence']:.0%}"
    return Measured("evidence", work, len(pairs), "questions", times, operations, goal)


def search(size: Size, folder: Path) -> Measured:
    """Vectors that the page cache holds, where it is large enough: they were just written."""
    import numpy as np

    from eadpr.runtime import machine as machines
    from eadpr.search import exact
    from eadpr.search.vectors import Vectors

    dim = size.shape["hidden"]
    write_vectors(folder / "vectors", size, dim)
    vectors = Vectors(folder / "vectors")
    questions = np.random.default_rng(1).standard_normal((size.queries, dim), np.float32)
    find = partial(exact.search, vectors, questions, size.depth, devices=machines.devices()[:1])
    find()
    times = [seconds(find) for _ in range(size.repeats)]
    work = f"passages of {dim} float16 by {size.queries:,} questions, top {size.depth}"
    goal = f"≤ {SEARCH_SECONDS:g} s for {FULL.rows:,}"
    return Measured("search", work, size.rows, "passages", times, None, goal)


def write_vectors(folder: Path, size: Size, dim: int) -> None:
    import numpy as np
    import torch

    from eadpr.runtime import files
    from eadpr.runtime import machine as machines
    from eadpr.search.vectors import MANIFEST, shard_name, shard_ranges

    torch.manual_seed(0)
    with files.new_folder(folder) as temporary:
        for number, (first, end) in enumerate(shard_ranges(size.rows, size.shard)):
            vectors = torch.randn(end - first, dim, device=machines.device()).half()
            np.save(temporary / shard_name(number), vectors.cpu().numpy())
        files.write_json(temporary / MANIFEST, {"rows": size.rows, "dim": dim, "shard_passages": size.shard})


PATHS = {"encoding": encoding, "training": training, "evidence": evidence, "search": search}


def about(rate: float) -> str:
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return f"{name}, torch {torch.__version__}: {rate / 1e12:,.1f} TFLOP/s of bfloat16 matrix products measured\n"


def line(row: Measured, rate: float) -> str:
    """Return a line of a Markdown table: the median, with the least and the highest of seconds."""
    median = statistics.median(row.seconds)
    done, share = "", ""
    if row.flops is not None:
        done, share = f"{row.flops / median / 1e12:,.1f}", f"{row.flops / median / rate:.1%}"
    return (
        f"| {row.path} | {row.units:,} {row.work} | {median:.3g} ({min(row.seconds):.3g} – {max(row.seconds):.3g})"
        f" | {row.units / median:,.0f} {row.unit} | {done} | {share} | {row.goal} |"
    )


if __name__ == "__main__":
    typer.run(main)
