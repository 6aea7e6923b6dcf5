"""Tables of Hugging Face's `datasets`: hf:NAME[:CONFIG[:SPLIT]] of the Hub, Parquet, and folders that it saved."""

import re
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HUB = "hf:"


def as_file(path: Path, out: Path) -> Path:
    """Write a table of `datasets` as a file in the folder `out`, fields of structs as columns (`answers.text`), and
    return it; return any other file as it is.

    Raises FileNotFoundError for a missing file, ValueError for a table of several splits, or one that cannot be read.
    """
    of_hub, file = str(path).startswith(HUB), out / (re.sub(r"\W+", "-", "-".join(path.parts[-2:])) + ".parquet")
    if not of_hub and not path.exists():
        near = get_close_matches(path.name, [sibling.name for sibling in path.parent.glob("*")], 1)
        raise FileNotFoundError(f"{path} does not exist" + (f"; did you mean {near[0]}?" if near else ""))
    if not of_hub and not any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        if path.suffix != ".parquet" or not any(pa.types.is_struct(column.type) for column in pq.read_schema(path)):
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
