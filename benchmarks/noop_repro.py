"""`dvc repro` with nothing to do: this pipeline, small and built, and a pipeline of as many stages that copy a line."""

from pathlib import Path
from typing import NamedTuple

from ruamel.yaml import YAML

from benchmarks.runner import ROOT, Comparison, Goal, Side, equal
from tests.small_pipeline import Project, create


class Size(NamedTuple):
    targets: tuple[str, ...]  # stages to build with all before them; none for all


FULL = Size(targets=())
QUICK = Size(targets=("fetch",))


def comparisons(size: Size, folder: Path) -> list[Comparison]:
    project = create(folder / "project")
    project.dvc("repro", *size.targets)
    stages = built(project)
    empty = create_empty(folder / "empty", len(stages))
    empty.dvc("repro")
    return [
        Comparison(
            path="dvc repro with nothing to do",
            peer="dvc repro of an empty pipeline",
            goal=Goal("time", 1.5),
            unit="stages",
            ours=repro(project, *size.targets),
            theirs=repro(empty),
            same=equal("stages that ran, and numbers of stages"),
        )
    ]


def built(project: Project) -> list[str]:
    return list(YAML(typ="safe", pure=True).load(project.lock())["stages"])


def repro(project: Project, *targets: str) -> Side:
    """Its result: the stages that ran, none, and how many there are."""

    def result() -> tuple[list[str], int]:
        return project.dvc("repro", *targets), len(built(project))

    return Side(lambda _: project.run("dvc", "repro", *targets), result=result, units=len(built(project)))


def create_empty(folder: Path, stages: int) -> Project:
    """A chain of stages: DVC runs a stage without a dependency anew every time."""
    (folder / ".dvc").mkdir(parents=True)
    (folder / ".dvc" / "config").write_text((ROOT / ".dvc" / "config").read_text())
    (folder / "0.txt").write_text("nothing\n")
    chain = {
        f"stage-{n}": {"cmd": f"cp {n}.txt {n + 1}.txt", "deps": [f"{n}.txt"], "outs": [f"{n + 1}.txt"]}
        for n in range(stages)
    }
    with (folder / "dvc.yaml").open("w", encoding="utf-8") as file:
        YAML().dump({"stages": chain}, file)
    project = Project(folder)
    project.run("git", "init", "-q", "-b", "main")
    return project
