"""Whether the settings of two-hop retrieval fit each other, the arms they come from and the beam.

Each raises ValueError naming the key, what was found there and what to do.
"""

from __future__ import annotations

from eadpr.params_arms import check_pivots, check_stopped, check_upsample
from eadpr.params_model import Layout, Settings


def check_multihop(layout: Layout, settings: Settings, multihop: dict[str, Settings]) -> None:
    """`multihop` are the settings of each model."""
    for name, own in multihop.items():
        train, positive, given = own.train, own.examples.positive, layout.multihop[name]
        if "shared" in given.model_extra.get("encoder", {}):
            raise ValueError(
                f"params.yaml: multihop.{name}.encoder.shared: two_hop.shared takes its place; set"
                f" multihop.{name}.two_hop.shared"
            )
        _check_memory(name, own)
        if positive != "each":
            raise ValueError(
                f"params.yaml: examples.positive of arm {given.of} is {positive}, but multihop.{name}"
                " learns from both passages of its examples; set it to each"
            )
        if train.shuffle_questions or train.shuffle_passages:
            raise ValueError(
                f"params.yaml: multihop.{name} cannot train on shuffled words; set train.shuffle_questions and"
                " train.shuffle_passages to false"
            )
        if train.freeze != "none" and own.two_hop.shared:
            raise ValueError(
                f"params.yaml: train.freeze of multihop.{name} is {train.freeze}, but two_hop.shared: true has one"
                " encoder for both sides; set one of them otherwise"
            )
        if own.loss.needs_distractors and own.examples.strategy == "none":
            raise ValueError(
                f"params.yaml: the loss of multihop.{name} uses distractors, but examples.strategy of arm"
                f" {given.of} is none; take an arm with distractors, or set lambda, tau1 and tau2 to 0"
            )
        if own.examples.strategy == "pivots":
            check_pivots(f"multihop.{name}", own)
        check_stopped(f"multihop.{name}", own)
        check_upsample(layout.collections[layout.collection], {f"multihop.{name}": own})
    if not multihop:
        return
    if odd := [k for k in settings.evaluate.all_at if k % 2]:
        raise ValueError(
            f"params.yaml: evaluate.all_at: {odd[0]} is odd, but paths of `multihop` have two passages; give even ones"
        )
    if settings.evaluate.all_at and settings.beam.paths < settings.evaluate.all_at[-1] // 2:
        raise ValueError(
            f"params.yaml: beam.paths: is {settings.beam.paths}, but evaluate.all_at looks at"
            f" {settings.evaluate.all_at[-1] // 2} paths; raise it"
        )
    if settings.beam.paths > settings.beam.width**2:
        raise ValueError(
            f"params.yaml: beam.paths: is {settings.beam.paths}, but a beam of width {settings.beam.width} holds"
            f" {settings.beam.width**2} paths; raise width"
        )


def _check_memory(name: str, own: Settings) -> None:
    if not own.two_hop.memory.size:
        return
    for key, needed in (
        ("two_hop.shared", True),
        ("train.freeze", "none"),
        ("loss.form", "paper"),
        ("loss.anchor", "question"),
        ("loss.stop_gradient", "none"),
    ):
        section, field = key.split(".")
        if (found := getattr(getattr(own, section), field)) != needed:
            raise ValueError(
                f"params.yaml: {key} of multihop.{name} is {found}, but with two_hop.memory the queries' encoder alone"
                f" learns, from a shared one, against passages without gradient; set it to {str(needed).lower()}, or"
                " two_hop.memory.size to 0"
            )
