"""Index the passages with Lucene and rank them by BM25 for the questions trained on and evaluated on.

Writes a ranking: train.parquet and evaluate.parquet.
"""

from eadpr.settings.command import stage


@stage(out="C/rankings/bm25")
def main(bm25, sets, *, records, out):
    from eadpr.supervision.bm25 import rank_question_sets

    count = rank_question_sets(records, out, bm25=bm25, sets=sets)
    return f"bm25: ranked passages for {count:,} questions"
