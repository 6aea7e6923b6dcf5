"""What the library makes of rows is what the stages make of them; and `import eadpr` loads nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import eadpr
from eadpr.library import texts
from eadpr.runtime.section import Sets
from eadpr.settings import checks as params_checks
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Fold, Passage, Positive, Question, SetMember
from eadpr.supervision import small_t5
from eadpr.supervision.config import PLACEBOS, Distractors, Recipe
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.evidence import find_evidence
from eadpr.supervision.manifest import Manifest, Model, write_manifest
from eadpr.training.pretrained import save_whole
from tests.supervision_toy import EVIDENCE, HARDWARE, RECIPE, TOWNS

pytestmark = pytest.mark.library
SETS = Sets(train=["toy/train"], evaluate=[], annotator=[])


def rows() -> list[dict]:
    """Questions of two kinds; the last has no evidence."""
    toy_rows = []
    for i, town in enumerate(TOWNS):
        text = f"Person {i} liked tea. Person {i} was born in {town}. They left in 19{i}1. Nobody knows why at all."
        question = f"Where was Person {i} born?" if i % 2 else f"When did Person {i} leave?"
        answer = ("Oslo" if i == 7 else town) if i % 2 else f"19{i}1"
        ids = {"id": f"q{i}", "passage_id": f"p{i}"}
        toy_rows.append(ids | {"question": question, "answers": [answer], "title": f"Person {i}", "text": text})
    return toy_rows


@pytest.fixture(scope="module")
def annotator(tmp_path_factory):
    """A random T5."""
    folder = tmp_path_factory.mktemp("annotator")
    torch.manual_seed(0)
    tokenizer = small_t5.train_tokenizer([row["text"].lower() for row in rows()], vocabulary=512)
    model = small_t5.new_model(Recipe(**RECIPE), vocabulary=len(tokenizer)).eval()
    save_whole(folder / "fold-0", model, tokenizer)
    write_manifest(folder, Manifest("build", texts.UNIFIEDQA, [Model("fold-0", [])], {}))
    return folder


def staged(folder, annotator, strategy: str) -> dict[tuple[str, str], str]:
    """The texts of distractors that the stages write, by question and strategy."""
    records, positives = folder / "records", folder / "positives"
    items = rows()
    passages = [Passage(row["passage_id"], row["title"], row["text"], None) for row in items]
    tables.write(records / "passages.parquet", Passage, passages)
    queries = [Question(row["id"], row["question"], row["answers"], "string", None, None, None, None) for row in items]
    tables.write(records / "questions.parquet", Question, queries)
    members = [SetMember("toy", "train", row["id"]) for row in items]
    tables.write(records / "question_sets.parquet", SetMember, members)
    pairs = [Positive(row["id"], row["passage_id"], "given", None) for row in items]
    tables.write(positives / "positives.parquet", Positive, pairs)
    tables.write(positives / "folds.parquet", Fold, [Fold(row["id"], "train", 0) for row in items])
    settings = EVIDENCE.model_copy(
        update={"strategies": [strategy, *PLACEBOS], "placebo_of": strategy, "window": 5, "input_tokens": 512}
    )
    table = folder / "evidence.parquet"
    read = {"records": records, "positives": positives}
    find_evidence(settings, SETS, HARDWARE, **read, annotator_folder=annotator, out=table)
    form_settings = Distractors(forms=["cut"], seed=3)
    write_distractors(form_settings, **read, evidence=table, out=folder / "distractors")
    written = tables.rows(folder / "distractors" / "distractors.parquet", Distractor)
    return {(row.question_id, row.strategy): row.text for row in written}


@pytest.mark.parametrize("strategy", ["sentence", "pseudo", "window", "answer"])
def test_rows_give_what_the_stages_give(tmp_path, annotator, strategy):
    distractors = staged(tmp_path, annotator, strategy)
    asks = {"annotator": annotator} if strategy == "pseudo" else {"evidence": strategy}
    compared = 0
    for row, result in zip(rows(), eadpr.distractors(rows(), **asks), strict=True):
        if row["id"] == "q7" and strategy != "pseudo":
            assert result.reasons["distractor"] == "no_evidence"
        for variant in ("distractor", *PLACEBOS):
            if variant in ("placebo", "placebo_second") and strategy in ("window", "answer"):
                assert variant not in result.variants
                assert result.reasons[variant] == "cut_otherwise", "as the distractor lacks no whole sentence"
                continue
            key = row["id"], strategy if variant == "distractor" else variant
            assert result.variants.get(variant) == distractors.get(key), key
            assert (variant in result.reasons) == (key not in distractors)
            compared += key in distractors
    assert compared > 15


def test_the_library_and_the_settings_agree_on_what_cuts_inside_of_a_sentence():
    assert texts.INSIDE == params_checks.INSIDE


def test_a_qa_model_by_its_folder_is_asked_as_unifiedqa(annotator):
    results = [list(eadpr.distractors(rows(), annotator=model)) for model in (annotator, str(annotator / "fold-0"))]
    assert results[0] == results[1]


LAZY = """
import sys
import eadpr
assert not {"torch", "numpy", "pydantic", "duckdb"} & set(sys.modules), sys.modules.keys()
from eadpr.runtime import files
assert files.__name__ == "eadpr.runtime.files"
assert set(eadpr.__all__) < set(dir(eadpr))
row = {"question": "Who?", "answers": ["Ada"], "text": "Tea is hot. Ada came. All left."}
assert [found.evidence for found in eadpr.annotate([row])] == [[(12, 21)]]
assert "torch" not in sys.modules, "rules need no model"
eadpr.evidence_loss
assert "transformers" not in sys.modules
try:
    eadpr.evidence_los
except AttributeError as error:
    assert str(error) == "module 'eadpr' has no attribute 'evidence_los'"
"""


def test_importing_costs_nothing_until_a_name_is_asked_for():
    subprocess.run([sys.executable, "-c", LAZY], check=True)
    assert all(getattr(eadpr, name) for name in eadpr.__all__)
    stub = Path(f"{eadpr.__file__}i").read_text(encoding="utf-8")
    assert all(f" as {name}\n" in stub for name in eadpr.__all__)
    assert stub.count(" as ") == len(eadpr.__all__)
