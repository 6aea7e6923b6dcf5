"""Train an arm's dual encoder: a folder of both encoders, and a log in DVCLive's layout."""

from eadpr.settings.command import stage


@stage(
    "{arm}/train.json",
    examples="C/examples/{arm}",
    init="C/models/{init}",
    out="C/models/{arm}",
    log="C/training/{arm}",
)
def main(loss, train, encoder, machine, *, records, examples, init, out, log):
    from eadpr.training import processes

    processes.launch("stages.train", train.processes)
    from eadpr.training.arm import ArmInputs, ArmSettings, train_arm

    inputs = ArmInputs(records=records, examples=examples, init=init)
    with processes.group():
        steps = train_arm(inputs, out, log, ArmSettings(loss, train, encoder, machine))
    return f"train: {steps:,} steps"
