"""A stage's command as several processes, which torchrun starts."""

import os
import sys
from typing import Literal


def launch(module: str, count: int | Literal["auto"]) -> None:
    """Become torchrun if `count` is above 1; each of its processes runs `module` with the same options.

    In these, and for one process, do nothing. `auto`: one for each GPU. The process must be settled (`machine.settle`).
    """
    if "WORLD_SIZE" in os.environ:
        return
    import torch

    cards = torch.cuda.device_count()
    if count == "auto":
        count = max(1, cards)
    if count > cards > 0:
        raise ValueError(
            f"train.processes is {count}, but there {'is 1 GPU' if cards == 1 else f'are {cards} GPUs'};"
            f" set it to auto or at most {cards}"
        )
    if count > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
        torchrun += ["-m", "--", module]  # without -- it takes our --log for the beginning of options of its own
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv[1:]])
