"""The arm that validation prefers: the one whose saved weights ranked held-out questions' positives highest."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.report.config import UNTRAINED
from eadpr.runtime import files


class ComparedValidations(NamedTuple):
    """Average ranks, counted from 0, of the positives of `questions` among the same `passages`, by arm. `others` have
    other questions or passages, e.g. negatives mined by another ranking, so that their ranks say nothing here."""

    ranks: dict[str, float]
    questions: int
    passages: int
    others: list[str]

    @property
    def preferred(self) -> str:
        """The arm of the lowest rank, of equal ones the untrained encoder, else the first: where no step helps, every
        arm keeps its first weights."""
        return min(self.ranks, key=lambda arm: (self.ranks[arm], arm != UNTRAINED))


def read_validation(training: Path, arms: Sequence[str]) -> ComparedValidations | None:
    """Compare the logs of the arms in the folder `training`; None where none of them was validated.

    Of arms with different questions or passages the largest group is compared, of equally large ones the first. Raises
    FileNotFoundError for an arm without a log.
    """
    groups: dict[str, dict[str, float]] = defaultdict(dict)
    counts = {}
    for arm in arms:
        path = training / arm / "metrics.json"
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to train the arm")
        log = files.read_json(path)
        if "validation_pool" in log:
            groups[log["validation_pool"]][arm] = log["validation"]["average_rank"]
            counts[log["validation_pool"]] = log["validation_questions"], log["validation_passages"]
    if not groups:
        return None
    pool = max(groups, key=lambda name: len(groups[name]))
    return ComparedValidations(groups[pool], *counts[pool], [arm for arm in arms if arm not in groups[pool]])


def preferred_arm(collection: Path, arms: Sequence[str]) -> str | None:
    """Return the arm that validation prefers; None where no arm was validated.

    Give an arm that others repeat with other seeds, and not these: its first training stands for it.
    """
    validation = read_validation(collection / "training", arms)
    return validation and validation.preferred
