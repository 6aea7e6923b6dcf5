"""What an arm was trained on as a folder of `datasets`: nothing is lost, and trainers take the rows as they are."""

import pyarrow.parquet as pq
import pytest
from datasets import get_dataset_config_names, load_dataset
from sentence_transformers import SentenceTransformer

from eadpr.library.losses import EvidenceLoss
from eadpr.publishing import card, data
from eadpr.storage import tables
from eadpr.storage.records import Distractor, Evidence, Negative, ScoredSpan, Span
from tests import small_collection as small
from tests import training_toy

pytestmark = pytest.mark.publishing

ABOUT = card.About(
    "published", "arm", "toy", "Toys, CC BY-NC 4.0.", "It began with random weights.", None, "other", "c0ffee"
)


@pytest.fixture
def made(toy, tmp_path):
    folder = tmp_path / "data" / "toy"
    (folder / "examples").mkdir(parents=True)
    built = training_toy.with_placebos(toy, tmp_path / "toy")
    (folder / "records").symlink_to(built / "records")
    (folder / "examples" / "arm").symlink_to(built / "examples")
    tables.write(folder / "negatives" / "arm" / "negatives.parquet", Negative, [Negative("q0", "n0", "bm25", 1)])
    spans = [ScoredSpan(0, 24, 1.5), ScoredSpan(25, 30, None)]
    tables.write(folder / "evidence.parquet", Evidence, [Evidence("q0", "p0", "gold", "Aron", spans, [0], None)])
    cut = [Distractor("q0", "p0", "gold", 0, "cut", "’\u2028\n\"", [Span(0, 24)])]  # fmt: skip
    tables.write(folder / "distractors" / "distractors.parquet", Distractor, cut)
    return folder


def publish(made, out, join="{title} {text}"):
    return data.publish_data("arm", made, out, join=join, about=ABOUT)


def test_a_round_trip_loses_nothing(made, tmp_path):
    out = tmp_path / "published"
    publish(made, out)
    sources = {
        "passages": made / "records", "questions": made / "records", "evidence": made,
        "negatives": made / "negatives" / "arm",
        "examples": made / "examples" / "arm", "distractors": made / "examples" / "arm",
        "placebos": made / "examples" / "arm", "all_distractors": made / "distractors",
    }  # fmt: skip
    for name, folder in sources.items():
        loaded = load_dataset(str(out), name, split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded.to_list() == pq.read_table(folder / f"{name.removeprefix('all_')}.parquet").to_pylist(), name
    named = get_dataset_config_names(str(out))
    assert set(named) == {"rows", *sources}, "JSON Lines beside Parquet could not be loaded"
    (cut,) = load_dataset(str(out), "all_distractors", split="train", cache_dir=str(tmp_path / "cache"))
    assert (cut["text"], cut["removed"]) == ("’\u2028\n\"", [{"start": 0, "end": 24}])  # fmt: skip


def test_the_rows_are_what_the_loss_takes(made, tmp_path):
    assert publish(made, tmp_path / "published", "{title}: {text}") == 15
    rows = load_dataset(str(tmp_path / "published"), split="train", cache_dir=str(tmp_path / "cache"))
    rest = "The birthplace of Alman is often asked about. Alman liked long walks."
    assert rows[0] == {
        "question": "where was Alman born?",
        "positive": f"Alman: Alman was born in Aron. {rest}",
        "negative": "Alman: Alman wrote letters. Alman liked quiet rooms.",
        "distractor": f"Alman: {rest}",
        "placebo": "",  # the first example has none
    }
    assert [i for i, text in enumerate(rows["distractor"]) if not text] == [14]
    model = SentenceTransformer(str(small.write_model(tmp_path / "model") / "passage_encoder"), device="cpu")
    loss = EvidenceLoss(model, rows.column_names)
    features = [model.preprocess(rows[:4][name]) for name in rows.column_names]
    assert loss(features).isfinite()
    given = loss.text_masks(features)
    assert given["placebos_Q"].tolist() == [False, True, True, True]


def test_its_card_warns_and_what_is_missing_is_named(made, tmp_path):
    publish(made, tmp_path / "published")
    assert "**Not for commercial use**" in (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="published exists and is not empty"):
        publish(made, tmp_path / "published")
    (made / "evidence.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"evidence\.parquet does not exist; run `dvc repro`"):
        publish(made, tmp_path / "other")
    assert not (tmp_path / "other").exists()
