"""Tables of Hugging Face's `datasets`: hf:NAME[:CONFIG[:SPLIT]] of the Hub, and folders that the package saved."""

import re
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

HUB = "hf:"


def as_file(path: Path, out: Path) -> Path:
    """Write a table of `datasets` as a file in the folder `out`, fields of structs as columns (`answers.text`), and
    return it; return any other file as it is.

    Raises FileNotFoundError for a missing file, ValueError for a table of several splits, or one that cannot be read.
    """
    of_hub = str(path).startswith(HUB)
    if not of_hub and not path.exists():
        near = get_close_matches(path.name, [sibling.name for sibling in path.parent.glob("*")], 1)
        raise FileNotFoundError(f"{path} does not exist" + (f"; did you mean {near[0]}?" if near else ""))
    if not of_hub and not any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        return path
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
    file = out / (re.sub(r"\W+", "-", "-".join(path.parts[-2:])) + ".parquet")
    data.flatten().to_parquet(file)
    return file
