"""The class of each section that a stage can take, by the name in the stage's signature, as sections.toml has them.

One name means the same in every stage. Importing the module must stay cheap.
"""

import tomllib
from pathlib import Path

TABLES = tomllib.loads(Path(__file__).with_name("sections.toml").read_text(encoding="utf-8"))
SECTIONS = TABLES["shared"]
GIVEN = {name: kind for name, kind in SECTIONS.items() if name != "path_reader"} | TABLES["given"]
# The hashes of a section's model folder.
GIVEN |= {f"{name}_files": "eadpr.runtime.model_folders:ModelFiles" for name in ("annotator", "base", "reader")}
