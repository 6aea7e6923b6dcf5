"""Join positives, negatives and distractors to an arm's training examples.

Writes examples.parquet and distractors.parquet. They do not note what they were made from: an arm without distractors
is not trained again when these change, nor one with them when other strategies are added.
"""

from eadpr.settings.command import stage


@stage("{arm}/examples.json", negatives="C/negatives/{arm}", out="C/examples/{arm}")
def main(examples, *, positives, negatives, distractors, out):
    from eadpr.supervision.examples import make_examples

    count = make_examples(positives, negatives, distractors, out, examples=examples)
    return f"examples: {count:,} for training"
