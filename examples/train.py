"""Fine-tune an encoder by the loss, in sentence-transformers: python examples/train.py MODEL ROWS FOLDER STEPS

ROWS is a JSONL file of `question`, `answers`, `text` and perhaps `title`.
"""

import json
import sys
from pathlib import Path

from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

import eadpr

name, path, folder, steps = sys.argv[1:]
texts = list(eadpr.distractors(map(json.loads, Path(path).read_text(encoding="utf-8").splitlines())))
rows = Dataset.from_list(list(eadpr.training_rows(texts)))  # question, positive, distractor, placebo
model = SentenceTransformer(name)
arguments = SentenceTransformerTrainingArguments(
    folder, max_steps=int(steps), per_device_train_batch_size=16, batch_sampler="no_duplicates", report_to="none"
)
loss = eadpr.EvidenceLoss(model, roles=rows.column_names)
SentenceTransformerTrainer(model=model, args=arguments, train_dataset=rows, loss=loss).train()
model.save_pretrained(folder)
