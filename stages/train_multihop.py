"""Train the encoders of two-hop retrieval on an arm's examples: a folder of them, and a log in DVCLive's layout."""

from eadpr.settings.command import stage


@stage(
    "multihop/{multihop}.json",
    examples="C/examples/{of}",
    init="C/models/{init}",
    out="C/models/{multihop}",
    log="C/training/{multihop}",
)
def main(loss, train, encoder, two_hop, machine, *, records, examples, init, out, log):
    from eadpr.training import processes

    processes.launch("stages.train_multihop", train.processes)
    from eadpr.two_hops.train import ArmInputs, ArmSettings, train_multihop

    inputs = ArmInputs(records=records, examples=examples, init=init)
    with processes.group():
        steps = train_multihop(inputs, out, log, ArmSettings(loss, train, encoder, machine), two_hop)
    return f"train_multihop: {steps:,} steps"
