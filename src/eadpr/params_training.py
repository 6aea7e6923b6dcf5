"""Whether the settings of a training fit each other and the examples that it learns from, as `params_checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from eadpr.params_model import Layout, Settings
from eadpr.supervision.config import Strategy
from eadpr.training.config import PLACEBO

# The forms of strategies that have not all of them.
FORMS = {
    "pivots": ("cut",),
    "window": ("cut", "swapped", "written"),
    "answer": ("cut", "swapped", "written"),
    "placebo": ("cut", "filled"),
    "placebo_words": ("cut",),
    "placebo_inside": ("cut",),
}
# What a memory bank needs: only the queries' encoder learns.
WITH_MEMORY = {
    "two_hop.shared": True,
    "train.freeze": "none",
    "loss.form": "paper",
    "loss.anchor": "question",
    "loss.stop_gradient": "none",
}


def of_training(who: str, arm: str, own: Settings, encoders: str) -> Iterator[str]:
    """Of what learns from the examples of `arm`; `encoders` is the section that says if it has one for both sides."""
    loss, frozen, pivots = own.loss, own.train.freeze, own.distractors.pivots
    for form in own.examples.shares:
        if form not in FORMS.get(own.examples.strategy, own.examples.shares):
            yield (
                f"examples.forms of {arm}: {form!r} is no form of examples.strategy {own.examples.strategy}; set its"
                " share to 0.0, or name another strategy"
            )
        elif form == "written" and own.examples.strategy not in ("none", *own.written.strategies):
            yield (
                f"examples.forms of {arm} has written, but its examples.strategy, {own.examples.strategy}, is not in"
                f" written.strategies {own.written.strategies}; add it there"
            )
    if own.examples.strategy == "pivots":
        if not pivots or not set(pivots) <= set(own.evidence.strategies):
            yield (
                f"examples.strategy of {arm} is pivots, so distractors.pivots must name two or more of"
                f" evidence.strategies {own.evidence.strategies}, found {pivots}"
            )
        if loss.form == "reference":
            yield (
                f"loss.form of {who} is reference, the published code, which has one distractor; set examples.strategy"
                " to another than pivots"
            )
    if loss.needs_distractors and own.examples.strategy == "none":
        yield (
            f"examples.strategy of {arm} is none, but the loss of {who} uses distractors (form {loss.form}, lambda"
            f" {loss.lambda_}, tau1 {loss.tau1}, tau2 {loss.tau2}); name a strategy, or set form to paper and the three"
            " to 0"
        )
    if loss.needs_placebos:
        yield from _of_placebos(who, arm, own)
    if frozen != "none" and getattr(own, encoders).shared:
        yield (
            f"train.freeze of {who} is {frozen}, but {encoders}.shared: true has one encoder for both sides; set"
            f" {encoders}.shared to false, or freeze to none"
        )
    if {frozen, loss.stop_gradient} == {"question", "passage"}:
        yield f"{who} learns nothing: train.freeze is {frozen} and loss.stop_gradient {loss.stop_gradient}"


def _of_placebos(who: str, arm: str, own: Settings) -> Iterator[str]:
    needed = f"the loss of {who} uses placebos (balance {own.loss.balance}, placebo {own.loss.placebo})"
    if own.examples.strategy not in (known := get_args(Strategy)):
        yield (
            f"examples.strategy of {arm} is {own.examples.strategy}, but {needed}, which control for evidence; name one"
            f" of {', '.join(known)}, or set balance to none and placebo to 0"
        )
    elif own.examples.strategy != own.evidence.placebo_of:
        yield (
            f"evidence.placebo_of is {own.evidence.placebo_of}, but {needed}, and examples.strategy of {arm} is"
            f" {own.examples.strategy}; placebos must be those of the same evidence, so set both alike"
        )
    uncut = [form for form in ("swapped", "written") if form in own.examples.shares]
    if own.loss.balances != "none" and uncut:
        yield (
            f"examples.forms of {arm} has {uncut[0]}, from which nothing is cut, but loss.balance is"
            f" {own.loss.balance}, which sets it against a passage that is cut; set its share to 0.0, or"
            " balance to none"
        )
    if PLACEBO not in own.evidence.strategies:
        yield (
            f"evidence.strategies: {PLACEBO} is not in {own.evidence.strategies}, but {needed}; add it, or set balance"
            " to none and placebo to 0"
        )


def of_multihop(layout: Layout, name: str, own: Settings, of_arm: Settings) -> Iterator[str]:
    given = layout.multihop[name]
    if own.loss.needs_placebos != of_arm.loss.needs_placebos:
        yield (
            f"loss of multihop.{name} (balance {own.loss.balance}, placebo {own.loss.placebo}) does not fit the"
            f" examples of arm {given.of}, which have placebos where the arm's own loss uses them; set balance and"
            " placebo of both alike"
        )
    if "shared" in given.model_extra.get("encoder", {}):
        yield f"multihop.{name}.encoder.shared: two_hop.shared takes its place; set multihop.{name}.two_hop.shared"
    for key, needed in WITH_MEMORY.items() if own.two_hop.memory.size else ():
        section, field = key.split(".")
        if (found := getattr(getattr(own, section), field)) != needed:
            yield (
                f"{key} of multihop.{name} is {found}, but with two_hop.memory the queries' encoder alone learns, from"
                f" a shared one, against passages without gradient; set it to {str(needed).lower()}, or"
                " two_hop.memory.size to 0"
            )
    if own.examples.positive != "each":
        yield (
            f"examples.positive of arm {given.of} is {own.examples.positive}, but multihop.{name} learns from both"
            " passages of its examples; set it to each"
        )
    if own.train.shuffle_questions or own.train.shuffle_passages:
        yield (
            f"multihop.{name} cannot train on shuffled words; set train.shuffle_questions and train.shuffle_passages to"
            " false"
        )
