"""The table of stages in docs/explanation/stages.md, made from dvc.yaml. `python -m tests.stage_table` rewrites it."""

from tests.repository import ROOT, is_code, stages

DOCUMENT = ROOT / "docs" / "explanation" / "stages.md"
BEGIN, END = "<!-- stages: python -m tests.stage_table -->\n", "<!-- /stages -->\n"
SHORT = {
    "data/${collection}": "C", "${collection}": "<collection>", "${key}": "<arm>", "${item.negatives}": "<negatives>",
    "${item.init}": "<init>", "${item.of}": "<of>", "${item.first}": "<first>", "${item.second}": "<second>",
    "${item.arm}": "<arm>", "${item.generator}": "<generator>", "${item.reader}": "<reader>",
    "${item.readers[0]}": "<first reader>", "${item.readers[1]}": "<second reader>", "${item.ranking}": "<ranking>",
}  # fmt: skip


def table() -> str:
    rows = ["| stage | does | reads | writes |", "|---|---|---|---|"]
    for name, stage in stages().items():
        arm = "@arm" if "${key}" in stage["cmd"] else "@"[: "matrix" in stage] + "-".join(stage.get("matrix", ()))
        reads = [dep for dep in stage["deps"] if not is_code(dep) and "/configs/" not in dep]
        outs = (*stage.get("outs", []), *stage.get("metrics", []))
        writes = [next(iter(out)) if isinstance(out, dict) else out for out in outs]
        rows.append(f"| {name}{arm} | {stage['desc']} | {_listed(reads)} | {_listed(writes)} |")
    return "\n".join(rows) + "\n"


def _listed(paths: list[str]) -> str:
    text = ", ".join(f"`{path}`" for path in paths)
    for long, short in SHORT.items():
        text = text.replace(long, short)
    return text


def rewritten(document: str) -> str:
    head, rest = document.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(rewritten(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
