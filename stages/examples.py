"""Join positives, negatives and distractors to an arm's training examples.

Writes examples.parquet and distractors.parquet.
"""

from eadpr.commands import stage


@stage("{arms}/examples.json")
def main(examples, *, positives, negatives, distractors, out):
    from eadpr.supervision.examples import make_examples

    count = make_examples(positives, negatives, distractors, out, examples=examples)
    return f"examples: {count:,} for training"
