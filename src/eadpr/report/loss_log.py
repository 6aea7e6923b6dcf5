"""The loss of every step in a training's log."""

from pathlib import Path

import numpy as np
import pandas as pd

LOSS = Path("plots/metrics/train/loss.tsv")  # within an arm's training log, as DVCLive names it


def read_loss(log: Path) -> pd.DataFrame:
    """Return columns `step` and `loss` of an arm's training log; an arm of 0 steps has the header alone."""
    path = log / LOSS
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; run `dvc repro` to train the arm")
    try:
        table = pd.read_csv(path, sep="\t", keep_default_na=False).drop(columns="timestamp", errors="ignore")
        table = table.set_index("step").set_axis(["loss"], axis=1).reset_index()
        return table.astype({"step": np.int64, "loss": np.float64})
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path} is no log of a training's loss ({error}); run `dvc repro` to train the arm"
        ) from error
