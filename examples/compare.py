"""Which of several models knows evidence? python examples/compare.py ROWS MODEL...

ROWS is a file of `question`, `answers`, `text` and perhaps `title`, JSONL or CSV. BM25 and the length of a passage are
measured beside the models, since a measure that these do well in says little.
"""

import sys
from pathlib import Path

import eadpr


def by_length(questions, titles, passages):
    return [float(len(passage)) for passage in passages]


texts = list(eadpr.distractors(Path(sys.argv[1])))
models = {name: name for name in sys.argv[2:]}
models |= {"BM25": eadpr.bm25(row.variants["positive"] for row in texts), "length": by_length}
print(eadpr.table({name: eadpr.awareness(model, texts) for name, model in models.items()}))
