"""Fine-tune an encoder by the loss, in sentence-transformers: python examples/train.py MODEL ROWS FOLDER STEPS

ROWS is a file of `question`, `answers`, `text` and perhaps `title`, JSONL or CSV.
"""

import sys
from pathlib import Path

from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

import eadpr

name, path, folder, steps = sys.argv[1:]
texts = list(eadpr.distractors(Path(path)))
rows = Dataset.from_list(list(eadpr.training_rows(texts)))  # question, positive, distractor, placebo
model = SentenceTransformer(name)
arguments = SentenceTransformerTrainingArguments(
    folder, max_steps=int(steps), per_device_train_batch_size=16, batch_sampler="no_duplicates", report_to="none"
)
loss = eadpr.EvidenceLoss(model, roles=rows.column_names)
SentenceTransformerTrainer(model=model, args=arguments, train_dataset=rows, loss=loss).train()
model.save_pretrained(folder)
