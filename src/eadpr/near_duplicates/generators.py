"""The generators by name. Only the one at work is imported: `rules` needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from eadpr.corpus.sources import File
from eadpr.machine import Machine
from eadpr.model_folders import ModelFiles
from eadpr.near_duplicates.config import Generation
from eadpr.near_duplicates.original import Generate


class Means(NamedTuple):
    """What a generator may need besides its settings: a model folder's files, and the collection's look-alikes."""

    hardware: Machine
    model_files: ModelFiles
    look_alikes: Sequence[tuple[File, Path]]


def _rules(settings: Generation, means: Means) -> Generate:
    from eadpr.near_duplicates.rules import rules

    return rules(settings.rules, settings.seed)


def _seq2seq(settings: Generation, means: Means) -> Generate:
    from eadpr.near_duplicates.seq2seq import seq2seq

    return seq2seq(settings.seq2seq, settings.seed, hardware=means.hardware, files=means.model_files)


def _endpoint(settings: Generation, means: Means) -> Generate:
    from eadpr.near_duplicates.endpoint import endpoint

    return endpoint(settings.endpoint, settings.seed)


def _given(settings: Generation, means: Means) -> Generate:
    from eadpr.near_duplicates.given import given

    return given(settings.given, means.look_alikes)


MAKERS: dict[str, Callable[[Generation, Means], Generate]] = {
    "rules": _rules,
    "seq2seq": _seq2seq,
    "endpoint": _endpoint,
    "given": _given,
}


def generator(settings: Generation, means: Means) -> Generate:
    return MAKERS[settings.generator](settings, means)
