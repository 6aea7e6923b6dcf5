"""Publish an arm and search with it, without the pipeline: python examples/publish.py ARM FOLDER QUESTION

Run it in the repository after `make repro`. The folder is a model of sentence-transformers, with the passages' vectors.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

try:
    from sentence_transformers import SentenceTransformer
except ModuleNotFoundError:
    sys.exit("error: sentence-transformers is not installed; pip install -c constraints.txt sentence-transformers")

arm, folder, question = sys.argv[1:]
if not Path(folder).exists():
    subprocess.run(["eadpr", "publish", arm, "--to", folder, "--vectors"], check=True)
model = SentenceTransformer(folder)
vectors = np.load(f"{folder}/vectors/vectors.npy").astype(np.float32)
ids = Path(folder, "vectors", "docid").read_text(encoding="utf-8").splitlines()
scores = vectors @ model.encode_query(question)
for row in np.argsort(-scores)[:3]:
    print(f"{scores[row]:.3f}  {ids[row]}")
