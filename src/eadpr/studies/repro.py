"""`eadpr repro`: `dvc repro` with two stages at a time where neither needs the other, and the headline at the end.

DVC runs one stage after another, and a small training leaves half of two cores idle. Here workers reproduce single
stages. DVC gives its lock away while a stage's command runs, so that dvc.lock and all bytes are those of `dvc repro`.
"""

import os
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from graphlib import TopologicalSorter
from logging import WARNING, getLogger
from multiprocessing import get_context
from pathlib import Path
from textwrap import shorten

from eadpr.runtime import machine
from eadpr.runtime.progress import LINES
from eadpr.settings.command import active_collection
from eadpr.studies import status
from eadpr.studies.provenance import SOURCES, git, last_change

LINES_BEFORE = 10  # of what `eadpr status` says
AT_ONCE = 2  # one where there is a GPU, whose memory a training may need


def main() -> str:
    """Run the stages that changed, two at a time, and show the headline of the report."""
    from dvc.exceptions import DvcException

    try:
        lines = [shorten(line, 160, placeholder=" …") for line in status.main([]).splitlines()]
        if len(lines) > LINES_BEFORE:
            lines[LINES_BEFORE - 1 :] = [f"… all {len(lines)} lines: eadpr status"]
        print("\n".join(lines), file=sys.stderr, flush=True)
        run_changed()
    except DvcException as error:
        raise ValueError(_describe(error)) from error
    collection = active_collection()
    headline = (Path("reports") / collection / "headline.md").read_text(encoding="utf-8")
    return offer_baseline(Path("metrics") / f"{collection}.json") + headline


def offer_baseline(metrics: Path) -> str:
    """Say why `metrics` differ from the commit though code and settings do not, and how they become the baseline."""
    changed = last_change() and git("diff", "--name-only", "HEAD", "--", str(metrics))
    if not changed or git("status", "--porcelain", "--", *SOURCES):
        return ""
    return (
        "These figures are not the committed ones: with the same code and settings, they differ by processor."
        " `dvc metrics diff` compares with your own after\n\n"
        f"    git commit -m 'Figures of this machine' dvc.lock {metrics}\n\n"
    )


def run_changed() -> None:
    """Run the changed stages of dvc.yaml and what they need, until one fails, which ChildProcessError names."""
    from dvc.repo import Repo
    from dvc.stage import PipelineStage
    from networkx import ancestors, descendants

    os.environ[LINES] = "1"
    with (
        Repo(_wait_for_lock=True) as repo,
        ProcessPoolExecutor(AT_ONCE, get_context("spawn"), initializer=_end_with, initargs=(os.getpid(),)) as pool,
    ):
        graph = repo.index.graph  # of every file of DVC, those of other collections too; from a stage to what it needs
        pipeline = [stage for stage in graph if isinstance(stage, PipelineStage)]
        needed = set(pipeline).union(*(descendants(graph, stage) for stage in pipeline))
        order = TopologicalSorter({stage: graph[stage] for stage in needed})
        order.prepare()
        ready, running = [], {}
        while order.is_active():
            ready += order.get_ready()
            while ready and (not running or (len(running) < AT_ONCE and machine.device() == "cpu")):
                # First those that most others wait for, such as an arm whose ranking another one learns from.
                ready.sort(key=lambda stage: (len(ancestors(graph, stage)), stage.addressing))
                stage = ready.pop()
                with repo.lock:
                    changed = stage.changed()
                if changed:
                    running[pool.submit(reproduce, stage.addressing)] = stage
                else:
                    order.done(stage)
                    ready += order.get_ready()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                if error := future.result():
                    raise ChildProcessError(error)
                order.done(running.pop(future))


def _end_with(parent: int) -> None:
    """End this worker when the process that it works for is gone, as DVC would be."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def reproduce(name: str) -> str:
    """Run one stage, or take its results from DVC's cache; return what went wrong, or nothing."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    getLogger("dvc.repo.scm_context").setLevel(WARNING)  # it would say after every stage what to `git add`
    try:
        with Repo(_wait_for_lock=True) as repo:
            repo.reproduce([name], single_item=True)
    except DvcException as error:
        return _describe(error)
    return ""


def _describe(error: Exception) -> str:
    return f"{error}: {error.__cause__}" if error.__cause__ else str(error)
