"""Fine-tune an arm's question encoder on the vectors of its passages.

Writes a folder of the same passage encoder and the new question encoder, and a log in DVCLive's layout.
"""

from eadpr.settings.command import stage


@stage(
    "query_sides/{query_side}.json",
    model="C/models/{of}",
    vectors="C/vectors/{of}",
    out="C/models/{query_side}",
    log="C/query_sides/{query_side}",
)
def main(query_side, machine, *, records, positives, model, vectors, out, log):
    from eadpr.search.query_side import QuerySideInputs, fine_tune

    inputs = QuerySideInputs(records=records, positives=positives, model=model, vectors=vectors)
    steps = fine_tune(inputs, out, log, settings=query_side, hardware=machine)
    return f"query_side: {steps:,} steps"
