"""A stage's command as several processes. Imports nothing that reads its settings once, as torch does (`settle`)."""

import os
import sys

VARIABLE = "EADPR_PROCESSES"


def launch(module: str) -> None:
    """Become torchrun where $EADPR_PROCESSES asks for several processes; each then runs `module` with the same options.
    Do nothing in those, or where one is enough. Raises ValueError where the variable is no number of processes."""
    wanted = os.environ.get(VARIABLE, "1")
    if not wanted.isdecimal() or not int(wanted):
        raise ValueError(f"{VARIABLE} is {wanted!r}; set it to a number of processes, such as 2, or unset it")
    if int(wanted) > 1 and "WORLD_SIZE" not in os.environ:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", wanted]
        torchrun += ["-m", "--", module]  # without -- it takes our --log for the beginning of options of its own
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv[1:]])
