"""Whether readers, of passages and of paths, fit the rankings they learn from, read and denoise.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from eadpr.params_model import Layout, Reading, Settings
from eadpr.reading.config import GOLD


def check_scoring(layout: Layout, readers: dict[str, Settings]) -> None:
    """Readers that score passages for the denoised rankings; `readers` are their settings."""
    for name, denoised in layout.denoised.items():
        for half, reader in enumerate(denoised.readers):
            own = readers[reader].reader
            if own.kind != "extractive":
                raise ValueError(
                    f"params.yaml: denoised.{name}.readers: {reader!r} is of kind {own.kind}, which selects no passage;"
                    " name one of kind extractive"
                )
            if own.half == half:
                raise ValueError(
                    f"params.yaml: denoised.{name}.readers: {reader!r} learns from half {half} of the training"
                    f" questions, and place {half} of the list is for who scores that half; name another there, or swap"
                    " the two"
                )


def check_promoted(layout: Layout, arms: dict[str, Settings], denoised: dict[str, Settings]) -> None:
    """An arm that asks for the first positive alone would never see those that a reader adds behind it."""
    for arm, own in arms.items():
        name = layout.active[arm].negatives
        above = denoised[name].denoise.above if name in denoised else None
        if above is not None and own.examples.positive == "first":
            raise ValueError(
                f"params.yaml: denoise.above of denoised.{name} is {above}, but examples.positive of arm {arm}, which"
                " mines it, is first, so that no new positive is asked for; set it to random or each, or above to null"
            )


def check_readers(layout: Layout, settings: Settings, readers: dict[str, Settings]) -> None:
    """Readers of the active collection, and what they read."""
    rankings = ("bm25", *layout.active, *layout.fused)
    models = (*layout.bases, *layout.query_sides, *layout.active)
    ranked = min(settings.bm25.depth, settings.retrieve.depth)
    for name, given in layout.readers.items():
        if given.ranking not in rankings:
            raise ValueError(
                f"params.yaml: readers.{name}.ranking: {given.ranking!r} is not one of the rankings"
                f" ({', '.join(rankings)})"
            )
        of_kind = {"extractive": [f"models/{model}" for model in models], "fid": ["annotator"]}
        allowed = of_kind[readers[name].reader.kind]
        if given.init not in allowed:
            raise ValueError(
                f"params.yaml: readers.{name}.init: {given.init!r} is not what a reader of kind"
                f" {readers[name].reader.kind} starts from; set one of {', '.join(allowed)}"
            )
        if readers[name].reader.depth > ranked:
            raise ValueError(
                f"params.yaml: readers.{name}: reader.depth: {readers[name].reader.depth} passages are to be looked at,"
                f" but rankings (bm25.depth, retrieve.depth) end at {ranked}"
            )
    _check_named("reading", layout.reading, tuple(layout.readers), (*rankings, *layout.multihop, GOLD))
    if layout.reading.rankings and settings.read.top_k[-1] > ranked:
        raise ValueError(
            f"params.yaml: read.top_k: {settings.read.top_k[-1]} passages are to be read, but rankings (bm25.depth,"
            f" retrieve.depth) end at {ranked}"
        )
    paths = 2 * settings.beam.paths
    for name in layout.reading.rankings:
        if name in layout.multihop and settings.read.top_k[-1] > paths:
            raise ValueError(
                f"params.yaml: read.top_k: {settings.read.top_k[-1]} passages are to be read, but the paths of"
                f" multihop.{name} (beam.paths) hold {paths} at most; lower top_k, or raise paths"
            )


def check_path_readers(layout: Layout, settings: Settings, readers: dict[str, Settings]) -> None:
    """Readers of paths of the active collection, and what they read."""
    rankings = tuple(layout.multihop)
    models = (*layout.bases, *layout.query_sides, *layout.active, *rankings)
    for name, given in layout.path_readers.items():
        if given.ranking not in rankings:
            raise ValueError(
                f"params.yaml: path_readers.{name}.ranking: {given.ranking!r} is not one of multihop"
                f" ({', '.join(rankings) or 'none'}), whose paths a reader of paths learns from"
            )
        if given.init not in (allowed := [f"models/{model}" for model in models]):
            raise ValueError(
                f"params.yaml: path_readers.{name}.init: {given.init!r} is not built; set one of {', '.join(allowed)}"
            )
        _check_paths(f"path_readers.{name}: path_reader.paths", readers[name].path_reader.paths, settings)
    _check_named("path_reading", layout.path_reading, tuple(layout.path_readers), rankings)
    if layout.path_reading.rankings:
        _check_paths("read_paths.paths", settings.read_paths.paths, settings)


def _check_paths(key: str, paths: int, settings: Settings) -> None:
    if paths > settings.beam.paths:
        raise ValueError(
            f"params.yaml: {key}: is {paths}, but beam.paths keeps {settings.beam.paths} of a question; lower it, or"
            " raise beam.paths"
        )


def _check_named(section: str, reading: Reading, readers: tuple[str, ...], rankings: tuple[str, ...]) -> None:
    for key, known in (("readers", readers), ("rankings", rankings)):
        for name in getattr(reading, key):
            if name not in known:
                raise ValueError(
                    f"params.yaml: {section}.{key}: {name!r} is not one of the {key} ({', '.join(known) or 'none'})"
                )
