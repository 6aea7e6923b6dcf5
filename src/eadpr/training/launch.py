"""A stage's command as several processes, of which torchrun makes one for each card or as many as are asked for."""

import os
import sys
from typing import Literal


def launch(module: str, wanted: int | Literal["auto"]) -> None:
    """Become torchrun where several processes are wanted; each then runs `module` with the same options. Do nothing in
    those, or where one is enough. `auto`: one for each GPU. The process must be settled (`machine.settle`)."""
    if "WORLD_SIZE" in os.environ:
        return
    import torch

    cards = torch.cuda.device_count()
    if wanted == "auto":
        wanted = max(1, cards)
    if wanted > cards > 0:
        raise ValueError(
            f"train.processes is {wanted}, but there {'is 1 GPU' if cards == 1 else f'are {cards} GPUs'};"
            f" set it to auto or at most {cards}"
        )
    if wanted > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(wanted)]
        torchrun += ["-m", "--", module]  # without -- it takes our --log for the beginning of options of its own
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv[1:]])
