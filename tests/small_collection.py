"""A few dozen passages and a random two-layer BERT over their words, for tests of encode and what follows."""

import json
import subprocess
from pathlib import Path

import numpy as np

from eadpr.search.vectors import Vectors, shard_name, shard_ranges
from eadpr.storage import tables
from eadpr.storage.records import Context, Distractor, Passage, Positive, Question, SetMember
from tests import forked_python

WORDS = [f"w{i}" for i in range(40)] + ["paris", "london", "1912", "capital", "born", "where", "was", "ada", "."]
MACHINE = {"threads": 1, "deterministic": True, "precision": "float32"}
ENCODE = {"shard_passages": 16, "window_passages": 8, "token_budget": 64}
SETS = {"train": ["toy/train"], "evaluate": ["toy/dev"], "annotator": []}
FAISS = {"search": "", "candidates": 10, "train_passages": 1_500, "seed": 0}
RETRIEVE = {"depth": 10, "candidates": 20, "sentences": 2, "index": "exact", "faiss": FAISS}


def passages(count: int = 37) -> list[Passage]:
    """Return passages of 1 to 30 words; every fifth has no title."""
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS[:40], rng.integers(1, 31))) for _ in range(count)]
    return [Passage(f"p{i}", "" if i % 5 == 0 else f"w{i % 7}", text, None) for i, text in enumerate(texts)]


def question(question_id: str, text: str, answers: list[str], kind: str = "string") -> Question:
    return Question(question_id, text, answers, kind, None, None, None, None)


def write_records(folder: Path, rows: list[Passage], questions: list[Question], train: int) -> Path:
    """The first `train` questions are toy/train, the others toy/dev."""
    tables.write(folder / "passages.parquet", Passage, rows)
    tables.write(folder / "questions.parquet", Question, questions)
    members = [SetMember("toy", "train" if i < train else "dev", q.id) for i, q in enumerate(questions)]
    tables.write(folder / "question_sets.parquet", SetMember, members)
    tables.write(folder / "contexts.parquet", Context, [])
    return folder


def write_model(folder: Path, *, seed: int = 0, passage_tokens: int = 24) -> Path:
    """Encoders of 16 dimensions with random weights; question and passage encoder differ."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from eadpr.training import encoder
    from eadpr.training.config import ResolvedSettings

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*special, *WORDS])}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    pair = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    backend.post_processor = pair
    settings = ResolvedSettings(pooling="mean", shared=False, question_tokens=16, passage_tokens=passage_tokens)
    torch.manual_seed(seed)
    sides = []
    for _ in range(2):
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
        )
        shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
        shape |= {"vocab_size": len(WORDS) + 4, "max_position_embeddings": 64, "initializer_range": 0.5}
        model = BertModel(BertConfig(**shape))
        sides.append(encoder.TextEncoder(model.eval(), tokenizer, settings))
    folder.mkdir(parents=True)
    encoder.save(folder, *sides)
    return folder


def write_vectors(folder: Path, values: np.ndarray, shard_passages: int = 1_000) -> Vectors:
    """A folder of vectors as `encode` writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    values = np.asarray(values, np.float16)
    for number, (first, end) in enumerate(shard_ranges(len(values), shard_passages)):
        np.save(folder / shard_name(number), values[first:end])
    manifest = {"rows": len(values), "dim": values.shape[1], "shard_passages": shard_passages}
    (folder / "vectors.json").write_text(json.dumps(manifest))
    return Vectors(folder)


def write_config(path: Path, **sections: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sections))
    return path


def write_positives(folder: Path, rows: list[Positive], distractors: list[Distractor]) -> Path:
    tables.write(folder / "positives.parquet", Positive, rows)
    tables.write(folder / "distractors.parquet", Distractor, distractors)
    return folder


COMMANDS = """
import json, os, runpy, sys
for module, arguments, cache in json.loads(sys.argv[1]):
    os.environ["EADPR_CACHE"] = cache
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


def stages(*commands: tuple[str, dict[str, Path], Path]) -> subprocess.CompletedProcess:
    """Run stage commands (name, options, cache), one after the other in one process."""
    words = ([str(word) for option in options.items() for word in option] for _, options, _ in commands)
    run = [(f"stages.{name}", argv, str(cache)) for (name, _, cache), argv in zip(commands, words, strict=True)]
    return python("-c", COMMANDS, json.dumps(run), cache=commands[0][2])


def python(*arguments: object, cache: Path) -> subprocess.CompletedProcess:
    return forked_python.python(*arguments, EADPR_CACHE=str(cache))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
