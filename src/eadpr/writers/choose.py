"""The generator that the settings name: a language model, or the collection's own files."""

from pathlib import Path

from eadpr.writers.config import Writer
from eadpr.writers.endpoint import generate_by_endpoint
from eadpr.writers.given import generate_from_files
from eadpr.writers.original import Generate


def make_generator(writer: Writer, seed: int, *, sources: Path, raw: Path) -> Generate:
    """Return the generator; `sources` and `raw` are the folders of the collection's files."""
    if writer.by == "endpoint":
        return generate_by_endpoint(writer.settings, seed)
    return generate_from_files([(file, file.local(sources=sources, raw=raw)) for file in writer.texts])
