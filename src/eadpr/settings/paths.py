"""The layout of data/, reports/ and metrics/: where a stage finds what it reads and leaves what it writes.

A path is a pattern such as `C/models/{arm}`: C stands for data/<collection>, a field for a name on the command line.
"""

import re
from pathlib import Path

PARAMS = Path("params.yaml")
# Paths that are the same for every arm; stages add those with a name in them, and where they write (`stage`).
FIXED = {
    "accuracy": "C/evidence_accuracy.json",
    "annotator": "C/annotator",
    "distractors": "C/distractors",
    "evidence": "C/evidence.parquet",
    "examples": "C/examples",
    "measured": "reports/{collection}",
    "negatives": "C/negatives",
    "outcomes": "C/outcomes",
    "pairs": "C/pairs",
    "positives": "C/positives",
    "rankings": "C/rankings",
    "raw": "C/raw",
    "records": "C/records",
    "sources": "data/sources/{collection}",
    "training": "C/training",
}


def fields(pattern: str) -> list[str]:
    """Return the names that a pattern needs, without the collection."""
    return [name for name in re.findall(r"\{(\w+)\}", pattern) if name != "collection"]


def locate(pattern: str, names: dict[str, str]) -> Path:
    """Return the path of a pattern with these names, among them the collection's."""
    return Path(re.sub("^C/", "data/{collection}/", pattern).format_map(names))


def active_collection() -> str:
    """Return the collection that params.yaml names. Only its line is read, as parsing the file takes a second."""
    match = re.search(r"(?m)^collection: *([\"']?)([a-z0-9][a-z0-9_-]*)\1 *(#.*)?$", PARAMS.read_text(encoding="utf-8"))
    if not match:
        raise ValueError(f"{PARAMS}: collection: expected a name on the line of the key; give --collection")
    return match[2]
