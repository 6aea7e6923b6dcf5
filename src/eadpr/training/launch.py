"""A stage's command as several processes, of which torchrun makes one for each card or as many as are asked for."""

import os
import sys
from typing import Literal


def launch(module: str, wanted: int | Literal["auto"]) -> None:
    """Become torchrun where several processes are wanted; each then runs `module` with the same options. Do nothing in
    those, or where one is enough. `auto`: one for each GPU. The process must be settled (`machine.settle`)."""
    if "WORLD_SIZE" in os.environ:
        return
    if wanted == "auto":
        import torch

        wanted = max(1, torch.cuda.device_count())
    if wanted > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(wanted)]
        torchrun += ["-m", "--", module]  # without -- it takes our --log for the beginning of options of its own
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv[1:]])
