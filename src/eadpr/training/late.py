"""Late interaction: the vectors of a text's tokens in the place of one vector (ColBERT; Khattab and Zaharia, 2020).

The tokens of a text stand in one row of fixed width, so that rows are cut, joined and sent between processes as vectors
are. Shapes: Q questions, N passages, P parts of one, D dimensions; W tokens of a row, A of a question, T of a passage.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

# Cosines computed at a time; 4 bytes each, and as many again for their gradient.
COSINES = 1 << 25


def token_rows(states: Tensor, keep: Tensor, width: int) -> Tensor:
    """Return (B, width * D) float32: the unit vectors of the tokens to `keep` (B, T), in order, then zeros.

    `states` are (B, T, D).
    """
    vectors_BTD = normalize(states.float(), dim=-1) * keep.unsqueeze(-1)
    order = (~keep).to(torch.int8).argsort(dim=1, stable=True)
    vectors_BTD = vectors_BTD.gather(1, order.unsqueeze(-1).expand_as(vectors_BTD))
    rows = vectors_BTD.new_zeros(len(states), width, states.shape[-1])
    rows[:, : states.shape[1]] = vectors_BTD
    return rows.flatten(1)


def late_scores(questions: Tensor, passages: Tensor, dim: int) -> Tensor:
    """Return (Q, N): for each token of the question its highest cosine with a token of the passage, on average.

    The mean in place of ColBERT's sum ranks alike, and leaves the scale of a loss as that of one cosine. Both sides are
    rows of `token_rows`. A question without tokens scores 0, a passage -1.
    """
    questions_QWD, passages_NWD = unpack(questions, dim), unpack(passages, dim)
    missing_NW = ~passages_NWD.any(-1)
    chunk = max(1, COSINES // (passages_NWD.shape[1] * questions_QWD.shape[0] * questions_QWD.shape[1]))
    scores = []
    for chunk_NWD, missing in zip(passages_NWD.split(chunk), missing_NW.split(chunk), strict=True):
        best_QNA = torch.einsum("qad,ntd->qnat", questions_QWD, chunk_NWD).masked_fill(missing[:, None], -1.0).amax(-1)
        scores.append(_average(best_QNA, questions_QWD))
    return torch.cat(scores, 1)


def part_scores(questions: Tensor, passages: Tensor, parts_QPT: Tensor, dim: int) -> Tensor:
    """Return (Q, P): the late score of each question with P parts of the one passage that stands in its row.

    `parts_QPT` says which of the first T tokens of that passage a part has; one without tokens scores -1.
    """
    questions_QWD, passages_QTD = unpack(questions, dim), passages.unflatten(1, (-1, dim))[:, : parts_QPT.shape[-1]]
    cosines_QAT = torch.einsum("qad,qtd->qat", questions_QWD, passages_QTD)
    return _average(cosines_QAT[:, None].masked_fill(~parts_QPT[:, :, None], -1.0).amax(-1), questions_QWD)


def _average(best_QNA: Tensor, questions_QWD: Tensor) -> Tensor:
    present_QA = questions_QWD.any(-1)
    return (best_QNA * present_QA[:, None]).sum(-1) / present_QA.sum(-1, keepdim=True).clamp(min=1)


def score(questions: Tensor, passages: Tensor, token_dim: int | None) -> Tensor:
    """Return (Q, N): dot products of vectors, or `late_scores` of rows of tokens of `token_dim` numbers."""
    return questions @ passages.T if token_dim is None else late_scores(questions, passages, token_dim)


def unpack(rows: Tensor, dim: int) -> Tensor:
    """Return (B, W, D) of rows (B, W * D), without the last columns of zeros."""
    tokens_BWD = rows.unflatten(1, (-1, dim))
    longest = int(tokens_BWD.any(-1).sum(1).max()) if len(rows) else 0
    return tokens_BWD[:, : max(1, longest)]
