"""Run a command and write what it took as JSON: `python -S benchmarks/usage.py OUT COMMAND...`.

A process's peak memory begins with that of the process that started it, so that one has to be small: this file imports
nothing else.
"""

import json
import os
import sys

process = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(process, 0)
with open(sys.argv[1], "w") as file:
    json.dump({"seconds": used.ru_utime + used.ru_stime, "resident": used.ru_maxrss * 1024}, file)
sys.exit(os.waitstatus_to_exitcode(status))
