"""Eight short passages, a question on each, and settings of a T5 so small that it is built in seconds."""

from pathlib import Path

from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.storage import tables
from eadpr.storage.records import Fold, Passage, Positive, Question, SetMember, Span
from eadpr.supervision.config import Annotator, EvidenceSettings

TOWNS = ("Arlo", "Brund", "Cassel", "Dorn", "Elmar", "Fosk", "Gant", "Hull")
HARDWARE = Machine(threads=1, deterministic=True, precision="float32")
SEPARATE = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=["toy/annotator"])
SHARED = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=["toy/train"])
RECIPE = {
    "vocabulary": 512, "width": 16, "heads": 2, "layers": 1, "feed_forward": 16, "dropout": 0.1,
    "continuation_steps": 6, "passage_tokens": 64, "snippet_tokens": 5, "continuation_tokens": 8, "answering_steps": 6,
    "input_tokens": 96, "batch": 3, "learning_rate": 0.001, "warmup_steps": 2, "weight_decay": 0.0,
    "max_grad_norm": 1.0, "seed": 7,
}  # fmt: skip
ANNOTATOR = {
    "kind": "answer", "by": "match", "model": "build", "revision": None,
    "prompt": "{question} \\n {context}", "lowercase": True, "build": RECIPE,
}  # fmt: skip
EVIDENCE = EvidenceSettings(
    strategies=["pseudo", "gold", "sentence", "window", "answer"], placebo_of="pseudo", window=2,
    input_tokens=128, positive="each",
)  # fmt: skip


def annotator_settings(**recipe: object) -> Annotator:
    return Annotator(**ANNOTATOR | {"build": RECIPE | recipe})


def write_collection(folder: Path) -> tuple[Path, Path]:
    """Questions 0-3 train, 4-5 dev, 6-7 annotator; the halves of the folds alternate. Returns records and positives."""
    records, positives = folder / "records", folder / "positives"
    passages, questions, members, pairs = [], [], [], []
    for i, town in enumerate(TOWNS):
        text = f"Person {i} liked tea. Person {i} was born in {town}. Nobody knows why."
        start = text.index(town)
        split = "train" if i < 4 else "dev" if i < 6 else "annotator"
        passages.append(Passage(f"p{i}", f"Person {i}", text, None))
        questions.append(Question(f"q{i}", f"Where was Person {i} born?", [town], "string", None, None, None, None))
        members.append(SetMember("toy", split, f"q{i}"))
        pairs.append(Positive(f"q{i}", f"p{i}", "given", [Span(start, start + len(town))]))
    tables.write(records / "passages.parquet", Passage, passages)
    tables.write(records / "questions.parquet", Question, questions)
    tables.write(records / "question_sets.parquet", SetMember, members)
    tables.write(positives / "positives.parquet", Positive, pairs)
    tables.write(positives / "folds.parquet", Fold, [Fold(f"q{i}", "train", i % 2) for i in range(4)])
    return records, positives
