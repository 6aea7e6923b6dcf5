"""Files of arms that are no longer active: a folder that DVC hashes whole must equal a fresh clone's."""

from collections.abc import Collection
from itertools import chain, product
from pathlib import Path

from eadpr.report.config import ReportArms, ReportInputs
from eadpr.runtime import files


def remove_inactive(inputs: ReportInputs, settings: ReportArms) -> list[Path]:
    """Delete what the report does not show from the folders that it reads, and return the paths."""
    active = {inputs.outcomes / f"{name}.parquet" for name in chain.from_iterable(settings.rows.values())}
    for kind, section, suffix in (("robustness", settings.robustness, ""), ("reading", settings.reading, ".parquet")):
        names = chain.from_iterable(section.trainings.values())
        active |= {inputs.outcomes / kind / method / f"{name}{suffix}" for method, name in product(section.by, names)}
    deleted = delete_others(inputs.outcomes, active)
    for folder in (inputs.pairs, inputs.training, inputs.negatives, inputs.examples):
        deleted += delete_inactive_rows(folder, settings)
    return deleted


def delete_inactive_rows(folder: Path, settings: ReportArms) -> list[Path]:
    """Delete all but what is named after a training or ranking of the report's rows, and return the paths."""
    names = set(chain.from_iterable(settings.rows.values()))
    return delete_others(folder, [path for path in folder.glob("[!.]*") if path.stem in names])


def delete_others(folder: Path, active: Collection[Path]) -> list[Path]:
    """Delete and return the paths in the folder that are not active and hold nothing active."""
    deleted = []
    for path in sorted(folder.glob("[!.]*")):
        if any(path in file.parents for file in active):
            deleted += delete_others(path, active)
        elif path not in active:
            files.discard(path)
            deleted.append(path)
    return deleted
