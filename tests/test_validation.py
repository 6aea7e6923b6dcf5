"""Which arm validation prefers, from the logs of trainings."""

import pytest

from eadpr.report.validation import preferred_arm, read_validation
from eadpr.runtime import files


def write_logs(folder, ranks, pools):
    for arm, rank in ranks.items():
        log = {"steps": 3}
        if rank is not None:
            log |= {"validation": {"average_rank": rank}, "validation_pool": pools.get(arm, "bm25")}
            log |= {"validation_questions": 9, "validation_passages": 40}
        files.write_json(folder / "training" / arm / "metrics.json", log)


def test_the_lowest_average_rank_among_the_same_passages_is_preferred(tmp_path):
    """The mined arms have other passages, so that their lower ranks do not count; of equal ranks the first is taken."""
    ranks = {"untrained": 2.5, "dpr": 1.5, "eadpr": 1.5, "dpr-mined": 0.5, "eadpr-mined": 0.25, "idle": None}
    write_logs(tmp_path, ranks, {"dpr-mined": "dpr", "eadpr-mined": "eadpr"})
    found = read_validation(tmp_path / "training", list(ranks))
    assert found.ranks == {"untrained": 2.5, "dpr": 1.5, "eadpr": 1.5}
    assert (found.questions, found.passages, found.others) == (9, 40, ["dpr-mined", "eadpr-mined", "idle"])
    assert preferred_arm(tmp_path, list(ranks)) == "dpr"
    assert preferred_arm(tmp_path, ["eadpr", "dpr"]) == "eadpr"
    assert preferred_arm(tmp_path, ["dpr-mined", "eadpr"]) == "dpr-mined"


def test_without_validation_no_arm_is_preferred_and_a_missing_log_is_named(tmp_path):
    write_logs(tmp_path, {"dpr": None}, {})
    assert preferred_arm(tmp_path, ["dpr"]) is None
    with pytest.raises(FileNotFoundError, match=r"eadpr/metrics\.json does not exist; run `dvc repro`"):
        preferred_arm(tmp_path, ["dpr", "eadpr"])
