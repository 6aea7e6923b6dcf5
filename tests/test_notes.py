"""What a report says to whoever reads it: which arm validation prefers, and which arms are worse than no training."""

import re

import pytest

from eadpr.evaluation.outcomes import Outcomes
from eadpr.report.notes import note_lower, note_validation, read_validation
from eadpr.runtime import files
from tests.evaluated import REPORT, write_outcomes


def write_logs(folder, ranks, pools, kept_step=3):
    for arm, rank in ranks.items():
        log = {"steps": 3, "kept_step": kept_step}
        if rank is not None:
            log |= {"validation": {"average_rank": rank}, "validation_pool": pools.get(arm, "bm25")}
            log |= {"validation_questions": 9, "validation_passages": 40}
        files.write_json(folder / "training" / arm / "metrics.json", log)


def test_the_lowest_average_rank_among_the_same_passages_is_preferred(tmp_path):
    """The mined arms have other passages, so that their lower ranks do not count. Of equal ranks the first is taken,
    and where no step made an arm better the untrained encoder."""
    ranks = {"untrained": 2.5, "dpr": 1.5, "eadpr": 1.5, "dpr-mined": 0.5, "eadpr-mined": 0.25, "idle": None}
    write_logs(tmp_path, ranks, {"dpr-mined": "dpr", "eadpr-mined": "eadpr"})
    validated = read_validation(tmp_path / "training", list(ranks))
    assert validated.ranks == {"untrained": 2.5, "dpr": 1.5, "eadpr": 1.5}
    assert (validated.questions, validated.passages, validated.others) == (9, 40, ["dpr-mined", "eadpr-mined", "idle"])
    assert validated.preferred == "dpr"
    assert read_validation(tmp_path / "training", ["eadpr", "dpr"]).preferred == "eadpr"
    assert read_validation(tmp_path / "training", ["dpr-mined", "eadpr"]).preferred == "dpr-mined"


def test_without_validation_no_arm_is_preferred_and_a_missing_log_is_named(tmp_path):
    write_logs(tmp_path, {"dpr": None}, {})
    assert read_validation(tmp_path / "training", ["dpr"]) is None
    with pytest.raises(FileNotFoundError, match=r"eadpr/metrics\.json does not exist; run `dvc repro`"):
        read_validation(tmp_path / "training", ["dpr", "eadpr"])


def test_the_preferred_arm_is_named_with_what_was_compared(tmp_path):
    write_logs(tmp_path, {"untrained": 2.5, "dpr": 1.5, "mined": 0.5}, {"mined": "dpr"})
    (note,) = note_validation(tmp_path / "training", ["untrained", "dpr", "mined"])
    assert note.startswith("Validation prefers **dpr**: over 9 held-out questions, so many of 40 passages stand above")
    assert "on average: dpr 1.50, untrained 2.50. `eadpr publish dpr --to FOLDER` takes it." in note
    assert note.endswith("questions and passages: mined.")
    write_logs(tmp_path, {"dpr": 3.5}, {}, kept_step=0)
    (note,) = note_validation(tmp_path / "training", ["untrained", "dpr"])
    assert note.startswith("Validation prefers **untrained**: ")
    assert "untrained 2.50, dpr 3.50. No training made the encoder better. dpr keeps the weights that it began" in note
    write_logs(tmp_path, {"untrained": 0.0, "dpr": 0.0}, {})
    note = note_validation(tmp_path / "training", ["dpr", "untrained"])[0]
    assert note.startswith("Validation prefers no arm: ")
    assert "untrained 0.00. It cannot tell" in note


@pytest.mark.parametrize("prefix", ["", "id_"])
def test_arms_beyond_doubt_below_the_untrained_encoder_or_bm25_are_named_with_what_helps(tmp_path, prefix):
    """BM25 finds 40 of 40 questions among the first 20, dpr 10, eadpr 39: of 40 drawn with replacement all may be among
    those 39. At top-1, which comes first in the table, the untrained encoder finds 20 and eadpr one."""
    outcomes = {}
    for name, counts in {"bm25": (0, 40), "untrained": (20, 38), "dpr": (0, 10), "eadpr": (1, 39)}.items():
        values = {f"{prefix}top{k}": [float(i < n) for i in range(40)] for k, n in zip((1, 20), counts, strict=True)}
        write_outcomes(tmp_path / name, values | {"mrr3": [0.0] * 40})
        outcomes[name] = Outcomes([tmp_path / name])
    trainings = {name: [name] for name in ("untrained", "dpr", "eadpr")}

    def notes(columns, trainings=trainings):
        settings = REPORT.model_copy(update={"trainings": trainings, "columns": columns})
        return note_lower("main/dev", {name: outcomes[name] for name in ["bm25", *trainings]}, settings, "own")

    by_id = " by id" if prefix else ""
    (below_untrained,) = notes(["mrr3", f"{prefix}top1", f"{prefix}top20"])
    number = r"-\d\d\.\d \[-\d\d\.\d, -\d\d\.\d\]"
    assert re.match(
        rf"\*\*Below untrained\*\* at top-1{by_id}, in points: dpr {number}; eadpr {number}\. ", below_untrained
    )
    assert "`dvc exp run -S collection=own -S ++collections.own.settings.train.learning_rate=1e-5`" in below_untrained
    _, below_bm25 = notes([f"{prefix}top20"])
    assert below_bm25.startswith(f"**Below bm25** at top-20{by_id}, in points: dpr -75.0 [-87.5, -6")
    assert "`dvc exp run -S collection=own -S '+fused.bm25-dpr={first: bm25, second: dpr}'`" in below_bm25
    assert notes([f"{prefix}top20"], {"eadpr": ["eadpr"]}) == notes(["mrr3"]) == []
