"""Make one ranking of two: train.parquet, evaluate.parquet and fusion.json."""

from eadpr.settings.command import stage


@stage("fused/{fused}.json", first="C/rankings/{first}", second="C/rankings/{second}", out="C/rankings/{fused}")
def main(fuse, retrieve, sets, *, records, positives, first, second, out):
    from eadpr.evaluation.fusion import fuse as fused

    chosen = fused(records, positives, first, second, out, settings=fuse, sets=sets, depth=retrieve.depth)
    return f"fuse: {fuse.by}" + (f", weight {chosen['weight']:g}" if chosen else "")
