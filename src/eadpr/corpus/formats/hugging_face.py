"""Tables of Hugging Face's `datasets`: hf:NAME[:CONFIG[:SPLIT]] of the Hub, Parquet, and folders that it saved."""

import re
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from eadpr.corpus.formats.file_rows import read_parquet

HUB = "hf:"


def as_file(path: Path, out: Path) -> Path:
    """Write a table of `datasets`, or Parquet with structs, as a file in `out`, fields as columns (`answers.text`), and
    return it; else return the path. Raises FileNotFoundError, ValueError for several splits or a damaged file."""
    of_hub, file = str(path).startswith(HUB), out / (re.sub(r"\W+", "-", "-".join(path.parts[-2:])) + ".parquet")
    if not of_hub and not path.exists():
        near = get_close_matches(path.name, [sibling.name for sibling in path.parent.glob("*")], 1)
        raise FileNotFoundError(f"{path} does not exist" + (f"; did you mean {near[0]}?" if near else ""))
    if not of_hub and not any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        rows = islice(read_parquet(path), 1) if path.suffix == ".parquet" else ()
        if not any(isinstance(value, dict) for row in rows for value in row.fields.values()):
            return path
        pq.write_table(pq.read_table(path).flatten(), file)
        return file
    if not find_spec("datasets"):
        raise ValueError(f"{path} is read by the package datasets, which is not installed: pip install datasets")
    import datasets

    name, config, split = [*str(path).removeprefix(HUB).split(":"), None, None][:3]
    try:
        data = datasets.load_dataset(name, config, split=split) if of_hub else datasets.load_from_disk(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}; a table is hf:NAME:CONFIG:SPLIT") from error
    if isinstance(data, dict):
        if len(data) > 1:
            raise ValueError(f"{path} has the splits {', '.join(data)}; name one, {HUB}NAME:CONFIG:SPLIT or its folder")
        (data,) = data.values()
    data.flatten().to_parquet(file)
    return file
