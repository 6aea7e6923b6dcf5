"""The stage `train_multihop`: from the examples of an arm to the encoders of two-hop retrieval (MDR).

The batches are of two hops; loop, losses and checkpoints come from `eadpr.training`.
"""

from functools import partial
from pathlib import Path

from eadpr.runtime.files import write_json
from eadpr.storage.passages import PassageStore
from eadpr.training import arm, contrastive, loop
from eadpr.training.arm import ArmInputs, ArmSettings
from eadpr.training.encoder import load_pair, save
from eadpr.training.example_set import read_examples
from eadpr.training.state import TrainingState
from eadpr.two_hops.batches import HopBatcher, pair_hops
from eadpr.two_hops.config import TwoHop
from eadpr.two_hops.hops import SETTINGS


def train_multihop(inputs: ArmInputs, out: Path, logs: Path, settings: ArmSettings, two_hop: TwoHop) -> int:
    """Train as `train_arm` does, for two hops. `inputs.examples` has an example for each supporting passage.

    `batch_size` counts questions, `hard_negatives` are for either hop. Raises ValueError for examples that cannot be
    trained on, and where a loss is not finite.
    """
    store = PassageStore(inputs.records / "passages.parquet")
    read = partial(read_examples, inputs.examples, inputs.records, store)
    training, validation = (
        pair_hops(read(role, settings.loss, settings.train.upsample), inputs.records, store)
        for role in ("train", "validation")
    )
    if not training.examples.questions:
        reason = f"holds no question with both hops ({training.left_out} lack one)"
        raise ValueError(f"{inputs.examples} {reason}; set examples.positive: each")
    arm.check_examples(training.examples, inputs.examples, settings.loss)
    pair = load_pair(inputs.init, settings.encoder.model_copy(update={"shared": two_hop.shared}))
    encoders = arm.prepare_encoders(pair, settings)
    batcher, validation_batcher = (
        HopBatcher(hops, store, encoders, settings.loss, settings.train, query_tokens=two_hop.query_tokens)
        for hops in (training, validation)
    )
    times = training.examples.times[::2]
    steps = settings.train.total_steps(len(times), int(times.sum()))

    def write(folder: Path) -> None:
        save(folder, *encoders)
        write_json(folder / SETTINGS, {"query_tokens": two_hop.query_tokens})

    def counts() -> dict[str, object]:
        without = sum(not len(rows) for rows in training.examples.negatives[::2])
        questions = {"questions": len(batcher), "left_out": training.left_out, "without_negatives": without}
        return questions | batcher.count_all()  # of hops

    return loop.train(
        TrainingState(encoders, settings.train),
        contrastive.task(batcher, validation_batcher, settings, steps),
        out,
        logs,
        key=partial(arm.fingerprint, inputs, settings, __file__, two_hop),
        save=write,
        counts=counts,
    )
