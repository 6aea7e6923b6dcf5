"""A small collection for the tests of training: people with a birthplace, each question asked of one passage."""

from collections.abc import Iterable
from pathlib import Path

from eadpr.runtime.machine import Machine
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Distractor, Example, Passage, Question, Span
from eadpr.training.base import make_base
from eadpr.training.batches import Batch, Batcher
from eadpr.training.config import Base, EncoderSettings, Loss, ResolvedSettings, Train
from eadpr.training.encoder import load_pair
from eadpr.training.example_set import read_examples

CITIES = ("Aron", "Belm", "Cast", "Dorn", "Elst", "Fahr", "Gant", "Holm")
NAMES = [f"{first}{last}" for first in ("Al", "Be", "Co", "Du", "Ek") for last in ("man", "ster", "vik", "ring")]
MACHINE = Machine(threads=1, deterministic=True, precision="float32")
SETTINGS = ResolvedSettings(pooling="mean", shared=False, question_tokens=16, passage_tokens=48)
AUTO = EncoderSettings(
    pooling="auto", similarity="auto", prompts="auto", title="auto", shared=False, question_tokens="auto",
    passage_tokens="auto", unit="passage",
)  # fmt: skip
BASE = Base(
    model="scratch", revision=None, layers=1, hidden=32, heads=2, intermediate=64, vocabulary=400, lowercase=True,
    tokenizer_passages=1000, seed=1,
)  # fmt: skip
PLAIN = {"form": "paper", "dpr": 1.0, "anchor": "question", "stop_gradient": "none", "mask_false_negatives": True}
PLAIN |= {"balance": "none", "pp_negatives": "all", "placebo": 0.0, "rest": 0.0, "scale": "auto"}
EADPR = Loss.model_validate(PLAIN | {"lambda": 1.0, "tau1": 1.0, "tau2": 1.0})
BALANCED = EADPR.model_copy(update={"balance": "placebo", "placebo": 0.5})
DPR = Loss.model_validate(PLAIN | {"lambda": 0.0, "tau1": 0.0, "tau2": 0.0})
EVIDENCE = DPR.model_copy(update={"rest": 0.5})  # of unit token
TRAIN = Train(
    seed=3, epochs=1, steps=6, step_factor=1.0, batch_size=4, processes=1, gradient_cache=None,
    hard_negatives=1, learning_rate=2e-3, warmup_steps=None, adam_beta1=0.9,
    adam_beta2=0.999, adam_eps=1e-8, weight_decay=0.0, max_grad_norm=2.0, freeze="none", layers=None,
    shuffle_questions=False, shuffle_passages=False, upsample={}, dropout=0.1, attention_dropout=0.1, keep="last",
    validate_every=3, validation_questions=4, validation_hard_negatives=2,
)  # fmt: skip


def series(out: Path, name: str) -> list[float]:
    """The values of a series, as `train/loss`, of a training into `out/log`."""
    header, *lines = (out / "log" / "plots" / "metrics" / f"{name}.tsv").read_text().splitlines()
    assert header == f"step\t{name.rpartition('/')[2]}"
    return [float(line.split("\t")[1]) for line in lines]


def text_of(name: str, city: str) -> tuple[str, str]:
    """The positive's text and the distractor's."""
    rest = f"The birthplace of {name} is often asked about. {name} liked long walks."
    return f"{name} was born in {city}. {rest}", rest


def write_collection(folder: Path) -> Path:
    """`records/` and `examples/` in `folder`; the fourth part of the questions is for validation.

    The second passage of each name is its hard negative; the last training question has no distractor."""
    passages, questions, examples, distractors = [], [], [], []
    for i, name in enumerate(NAMES):
        city = CITIES[i % len(CITIES)]
        positive, distractor = text_of(name, city)
        evidence = Span(0, len(positive) - len(distractor) - 1)
        passages.append(Passage(f"p{i}", name, positive, None))
        passages.append(Passage(f"n{i}", name, f"{name} wrote letters. {name} liked quiet rooms.", None))
        questions.append(Question(f"q{i}", f"where was {name} born?", [city], "string", None, None, None, None))
        role = "validation" if i % 4 == 3 else "train"
        levels = [] if i == len(NAMES) - 2 else [0]
        examples.append(Example(f"q{i}", role, f"p{i}", [f"n{i}"], levels, []))
        if levels:
            distractors.append(Distractor(f"q{i}", f"p{i}", "gold", 0, "cut", distractor, [evidence]))
    return write_tables(folder, passages, questions, examples, distractors)


def write_tables(
    folder: Path, passages: Iterable[Passage], questions: Iterable[Question], examples: Iterable[Example],
    distractors: Iterable[Distractor] = (), placebos: Iterable[Distractor] = (),
) -> Path:  # fmt: skip
    tables.write(folder / "records" / "passages.parquet", Passage, passages)
    tables.write(folder / "records" / "questions.parquet", Question, questions)
    tables.write(folder / "examples" / "examples.parquet", Example, examples)
    tables.write(folder / "examples" / "distractors.parquet", Distractor, distractors)
    tables.write(folder / "examples" / "placebos.parquet", Distractor, placebos)
    return folder


def with_placebos(toy: Path, folder: Path) -> Path:
    """The collection in `folder`, with placebos, positives without their last sentence, of all examples but one."""
    rows = tables.rows(toy / "records" / "passages.parquet", Passage)
    texts = {row.id: f"{row.text.rsplit('. ', 1)[0]}." for row in rows}
    examples = list(tables.rows(toy / "examples" / "examples.parquet", Example))
    distractors = list(tables.rows(toy / "examples" / "distractors.parquet", Distractor))
    placebo = distractors[0]._replace(strategy="placebo")
    placebos = [
        placebo._replace(question_id=row.question_id, passage_id=row.positive, text=texts[row.positive])
        for row in examples[1:]
    ]
    tables.write(folder / "examples" / "examples.parquet", Example, examples)
    tables.write(folder / "examples" / "distractors.parquet", Distractor, distractors)
    tables.write(folder / "examples" / "placebos.parquet", Distractor, placebos)
    for name in ("records", "base"):
        (folder / name).symlink_to(toy / name)
    return folder


def write_all(folder: Path, settings: ResolvedSettings = SETTINGS) -> Path:
    """The collection and `base/`, the encoders to start from."""
    write_collection(folder)
    make_base(folder / "records" / "passages.parquet", folder / "base", base=BASE, settings=settings)
    return folder


def column_inputs(batch: Batch, columns: slice) -> list[tuple[int, ...]]:
    """The token ids of some columns of a batch."""
    return [tuple(batch.passages[column].tolist()) for column in batch.columns_P[columns].tolist()]


def batcher_of(
    folder: Path, *, hard=1, mask=True, settings=SETTINGS, distractors=True, placebos=False, balance="none",
    shuffle=False, rest=0.0, size=4,
) -> Batcher:  # fmt: skip
    store = PassageStore(folder / "records" / "passages.parquet")
    needed = (BALANCED if placebos else EADPR) if distractors else DPR
    needed = needed.model_copy(update={"rest": rest})
    examples = read_examples(folder / "examples", folder / "records", store, "train", needed, {})
    loss = EADPR.model_copy(update={"mask_false_negatives": mask, "balance": balance, "rest": rest})
    train = TRAIN.model_copy(update={"hard_negatives": hard, "shuffle_questions": shuffle, "shuffle_passages": shuffle})
    train = train.model_copy(update={"batch_size": size})
    encoders = load_pair(folder / "base", settings)
    return Batcher(examples, store, encoders, loss, train, shuffle=shuffle)
