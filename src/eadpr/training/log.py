"""What a training logs, in DVCLive's layout: `plots/metrics/<name>.tsv` per series, `metrics.json` for the end.

We write it ourselves, since dvclive's `Live` fails in a repository without commits. No times, so that bytes repeat.
"""

from __future__ import annotations

import math
from pathlib import Path

from eadpr.files import new_folder, write_json, write_text

Series = dict[str, list[tuple[int, float]]]


def append(series: Series, step: int, values: dict[str, float]) -> None:
    for name, value in values.items():
        series.setdefault(name, []).append((step, value))


def tail_mean(rows: list[tuple[int, float]], steps: int) -> float:
    """Mean of the last values; there is at least one."""
    values = [value for _, value in rows[-steps:]]
    return sum(values) / len(values)


def rounded(values: dict[str, float]) -> dict[str, float]:
    """To 7 digits; what is not finite is left out."""
    return {name: float(f"{value:.7g}") for name, value in values.items() if math.isfinite(value)}


def write(folder: Path, series: Series, final: dict[str, object]) -> None:
    """`series` maps a name such as `train/loss` to (step, value) pairs; values are written with 7 digits."""
    with new_folder(folder) as temporary:
        for name, rows in series.items():
            lines = [f"step\t{name.rpartition('/')[2]}", *(f"{step}\t{value:.7g}" for step, value in rows)]
            write_text(temporary / "plots" / "metrics" / f"{name}.tsv", "\n".join(lines) + "\n")
        write_json(temporary / "metrics.json", final)
