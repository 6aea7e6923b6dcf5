"""What one vector of a passage costs: the same weights, matched by one vector, by sentences and by tokens."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from eadpr.library.awareness import awareness, cell
from eadpr.library.scorers import distinct, encoder_scorer, load_encoders
from eadpr.library.texts import Texts
from eadpr.report import markdown
from eadpr.runtime.terminal import counted
from eadpr.search import late
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.training.config import AUTO

# The changes of an encoder's settings; vectors come first, as they propose what sentences and tokens rank.
UNITS = {
    "one vector, dot": {"similarity": "dot", "unit": "passage"},
    "one vector, cosine": {"similarity": "cosine", "unit": "passage"},
    "best sentence": {"unit": "sentence"},
    "tokens": {"unit": "token"},
}
CANDIDATES = 200  # as retrieve.candidates
QUESTIONS = 1_024  # ranked at a time
CONTROLLED = "controlled_aa_evidence"


def table(models: Sequence[str], texts: Sequence[Texts], join: str | None = None) -> str:
    """Return a Markdown table: for each model and unit, how often a row's own passage is the first of all passages, and
    controlled AA-evidence, in %; below it how many sentences of the passages a model does not read.

    Sentences and tokens rank the CANDIDATES of highest cosine. A model with layers behind its pooling has no tokens.
    """
    passages, right = distinct((row.title, row.variants["positive"]) for row in texts)
    questions = [row.question for row in texts]
    rows, notes, has_layers = [], [], False
    for model, (unit, changes) in product(models, UNITS.items()):
        if unit == "tokens" and has_layers:
            continue
        encoders = load_encoders(model, AUTO.model_copy(update=changes))
        has_layers = encoders.passage.projection is not None
        scorer = encoder_scorer(encoders, join)
        ids: Any = encoders.question.question_ids(questions), scorer.inputs(*map(list, zip(*passages, strict=True)))
        if unread := encoders.passage.unread:  # before texts that lack a piece are read too
            notes.append(f"{model} does not read {counted(unread, 'sentence')} of these passages, beyond its cut.")
        if changes["unit"] == "passage":
            ranked = candidates = rank(*map(embed, encoders, ids))
        else:
            read_ids = partial(late.take, ids[1])
            ranked = late.rescore(candidates, encoders, ids[0], read_ids, depth=1, label=f"{model}, {unit}")
        top1, controlled = np.mean(ranked.rows[:, 0] == right), awareness(scorer, texts).get(CONTROLLED)
        rows.append([f"{model}, {unit}", f"{100 * top1:.1f}", cell(controlled)])
    header = ["model", f"top-1 of {len(passages):,} passages", markdown.title(CONTROLLED)]
    return "\n\n".join([markdown.table(header, rows), *notes])


def rank(questions_QD: np.ndarray, passages_ND: np.ndarray) -> Hits:
    """Return the CANDIDATES of N passages with the highest dot products for each of Q questions."""
    passages_DN, depth = torch.from_numpy(passages_ND).T, min(CANDIDATES, len(passages_ND))
    parts = [(part_QD @ passages_DN).topk(depth) for part_QD in torch.from_numpy(questions_QD).split(QUESTIONS)]
    return Hits(*(torch.cat(values).numpy() for values in ([p.indices for p in parts], [p.values for p in parts])))
