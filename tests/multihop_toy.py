"""A small collection of two hops: who works for which firm, where a firm was founded, and who of two is older."""

from pathlib import Path

from eadpr.storage import tables
from eadpr.storage.records import Context, Distractor, Example, Passage, Positive, Question, SetMember
from eadpr.training.base import make_base
from eadpr.training.config import ResolvedSettings
from eadpr.two_hops.config import Beam, TwoHop
from tests.training_toy import BASE, CITIES, NAMES

SETTINGS = ResolvedSettings(pooling="mean", shared=False, question_tokens=32, passage_tokens=48)
TWO_HOP = TwoHop(shared=True, query_tokens=96)
BEAM = Beam(width=6, paths=4)
FIRMS = ("Ardco", "Belltec", "Corvia", "Deltron", "Estrom", "Fenwick", "Gryps", "Hallex")
COMPARED = 4  # questions that compare, after those of the names


def work(i: int) -> tuple[str, str]:
    """Text and distractor of what is said of the i-th name."""
    rest = f"{NAMES[i]} is fond of walks."
    return f"{NAMES[i]} works for {FIRMS[i % 8]}. {rest}", rest


def founding(i: int) -> tuple[str, str]:
    rest = f"{FIRMS[i]} has many customers."
    return f"{FIRMS[i]} was founded in {CITIES[i]}. {rest}", rest


def write_collection(folder: Path) -> Path:
    """`records/`, `positives/` and `examples/` in `folder`: passages w<i> of names, f<i> of firms, a blank one, n<i>.

    Question q<i> asks after the founding place of the firm of name i; c<i> compares names 2i and 2i + 1. The fourth
    part is for validation and evaluated; the first question has no distractor at hop 2."""
    texts = {f"w{i}": work(i) for i in range(len(NAMES))} | {f"f{i}": founding(i) for i in range(len(FIRMS))}
    passages = [Passage(name, "", text, None) for name, (text, _) in texts.items()]
    passages += [Passage(f"n{i}", name, f"{name} wrote letters.", None) for i, name in enumerate(NAMES)]
    passages.append(Passage("blank", "Ardco", "", None))
    specs = [
        (f"q{i}", f"where was the firm of {name} founded?", CITIES[i % 8], "bridge", [f"w{i}", f"f{i % 8}"])
        for i, name in enumerate(NAMES)
    ]
    pairs = [(2 * i, 2 * i + 1) for i in range(COMPARED)]
    specs += [
        (f"c{i}", f"who is older, {NAMES[a]} or {NAMES[b]}?", NAMES[a], "comparison", [f"w{a}", f"w{b}"])
        for i, (a, b) in enumerate(pairs)
    ]
    questions = [Question(i, text, [answer], "string", None, None, kind, hops) for i, text, answer, kind, hops in specs]
    examples, distractors, positives, members = [], [], [], []
    for n, question in enumerate(questions):
        role = "validation" if n % 4 == 3 else "train"
        members.append(SetMember("toy", "train" if role == "train" else "dev", question.id))
        for hop, passage_id in enumerate(question.hops):
            levels = [] if (n, hop) == (0, 1) else [0]
            negatives = [f"n{(n + k) % len(NAMES)}" for k in range(3)]
            other_ids = [other_id for other_id in question.hops if other_id != passage_id]
            examples.append(Example(question.id, role, passage_id, negatives, levels, other_ids))
            positives.append(Positive(question.id, passage_id, "given", None))
            if levels:
                distractors.append(Distractor(question.id, passage_id, "gold", 0, "cut", texts[passage_id][1], []))
    for name, record, rows in (
        ("records/passages", Passage, passages),
        ("records/questions", Question, questions),
        ("records/question_sets", SetMember, members),
        ("records/contexts", Context, []),
        ("positives/positives", Positive, positives),
        ("examples/examples", Example, examples),
        ("examples/distractors", Distractor, distractors),
    ):
        tables.write(folder / f"{name}.parquet", record, rows)
    return folder


def write_all(folder: Path) -> Path:
    """The collection and `base/`, the encoders to start from."""
    write_collection(folder)
    make_base(folder / "records" / "passages.parquet", folder / "base", base=BASE, settings=SETTINGS)
    return folder
