"""Search by a published arm's tokens, in Qdrant and LanceDB: python examples/search_tokens.py FOLDER TEXTS QUESTION

FOLDER is what `eadpr publish` writes of an arm with `encoder.unit: token`. Each line of the file TEXTS is a passage, in
the form that the folder's README.md states. The scores are the model's own, `meanmaxsim`.
"""

import sys
from pathlib import Path

import lancedb
import pyarrow as pa
from qdrant_client import QdrantClient, models
from sentence_transformers import MultiVectorEncoder

folder, path, question = sys.argv[1:]
texts = Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n")
model = MultiVectorEncoder(folder, device="cpu")
passages = [tokens.tolist() for tokens in model.encode_document(texts)]
query = model.encode_query(question).tolist()
size = len(query[0])

client = QdrantClient(":memory:")
by_token = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
form = models.VectorParams(size=size, distance=models.Distance.DOT, multivector_config=by_token)
client.create_collection("passages", vectors_config=form)
client.upsert("passages", [models.PointStruct(id=row, vector=tokens) for row, tokens in enumerate(passages)])
points = client.query_points("passages", query=query, limit=3).points
of_qdrant = [(point.id, point.score / len(query)) for point in points]

column = pa.array(passages, pa.list_(pa.list_(pa.float32(), size)))
table = lancedb.connect("memory://").create_table("passages", pa.table({"row": range(len(texts)), "tokens": column}))
rows = table.search(query, vector_column_name="tokens").distance_type("cosine").limit(3).to_list()
of_lancedb = [(row["row"], 1 - row["_distance"] / len(query)) for row in rows]

for row, score in of_qdrant:
    print(f"{score:.3f}  {texts[row]}")
