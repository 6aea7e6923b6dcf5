"""The product and what people would use instead, side by side: the same data, weights and threads, the same results.

Each module measures one path and has a function `comparisons(size, folder)`, with the sizes `FULL` and `QUICK`; the
latter only shows that it works. `python -m benchmarks` runs them. What they need besides the product is in
requirements/test.txt; nothing here may be imported by `src`.
"""

NAMES = ("evidence_scoring", "training", "passage_encoding", "exact_search", "bm25_ranking", "late_interaction")
