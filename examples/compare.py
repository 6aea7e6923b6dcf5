"""Which of several models knows evidence? python examples/compare.py ROWS MODEL...

ROWS is a JSONL file of `question`, `answers`, `text` and perhaps `title`. BM25 and the length of a passage are measured
beside the models, since a measure that these do well in says little.
"""

import json
import sys
from pathlib import Path

import eadpr


def by_length(questions, titles, passages):
    return [float(len(passage)) for passage in passages]


rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
texts = list(eadpr.distractors(rows))
models = {name: name for name in sys.argv[2:]}
models |= {"BM25": eadpr.bm25(row["text"] for row in rows), "length": by_length}
print(eadpr.table({name: eadpr.awareness(model, texts) for name, model in models.items()}))
