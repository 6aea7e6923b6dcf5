"""The sentence of a passage that a question matches, by the states of its tokens in the whole passage.

Q questions, S sentences, T tokens, D dimensions of a token's state.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn.functional import normalize

from eadpr.runtime import machine
from eadpr.runtime.progress import progress
from eadpr.search import late
from eadpr.search.encode import embed
from eadpr.search.exact import Hits
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.rankings import MatchedSentence
from eadpr.storage.records import Passage, Span
from eadpr.text.spans import segment
from eadpr.training.encoder import TextEncoder
from eadpr.training.late import late_scores, token_rows
from eadpr.training.padding import TOKENS, batches, pad


def score_sentences(
    questions: Tensor, states: Tensor, sentence_of_token: Tensor, count: int, *, finish: Callable, token_dim: int | None
) -> Tensor:
    """Return (Q, S) float32 for states (T, D) of a passage's tokens and the number (T,) of each one's sentence or -1.

    Rows of tokens meet each sentence's tokens alone by `late_scores`; vectors meet the mean of the sentence's states,
    which `finish` makes a vector, by dot product. A sentence without a token has NaN.
    """
    masks_ST = sentence_of_token == torch.arange(count, device=states.device)[:, None]
    with torch.autocast(machine.device(), enabled=False):
        if token_dim:
            rows = token_rows(states.expand(count, -1, -1), masks_ST, len(states))
            scores = late_scores(questions, rows, token_dim)
        else:
            means_SD = masks_ST.float() @ states.float() / masks_ST.sum(1, keepdim=True)
            scores = questions @ finish(means_SD).T
    return scores.masked_fill(~masks_ST.any(1), torch.nan)


def embed_questions(encoder: TextEncoder, ids: late.Ids) -> Tensor:
    """Return what `score_sentences` takes: rows of tokens where these are the unit, or vectors."""
    if encoder.settings.unit == "passage":
        return torch.from_numpy(embed(encoder, ids))
    rows = late.embed_tokens(encoder, ids)
    return rows if encoder.settings.unit == "token" else rows[:, : encoder.token_dim]


@torch.inference_mode()
def score_passages(
    questions: Tensor,
    question_of: np.ndarray,
    passage_of: np.ndarray,
    read: Callable[[Sequence[int]], Sequence[Passage]],
    encoder: TextEncoder,
    advance: Callable[[int], None] = lambda done: None,
) -> Iterator[tuple[np.ndarray, list[Span], np.ndarray]]:
    """Yield, for each distinct passage of the pairs of a row of `questions` and a passage, both (F,) int: the places of
    its pairs, its sentences, and their scores (pairs, S) by `score_sentences`. `read` returns passages."""
    if not encoder.tokenizer.is_fast:
        reason = "tells no offsets of its tokens; take a model with a tokenizer.json, or set retrieve.sentences: 0"
        raise ValueError(f"the tokenizer of {encoder.tokenizer.name_or_path} {reason}")
    unit, device = encoder.settings.unit, machine.device()
    finish = (lambda means_SD: normalize(encoder.finish(means_SD), dim=-1)) if unit == "sentence" else encoder.finish
    how = {"finish": finish, "token_dim": encoder.token_dim if unit == "token" else None}
    for rows, groups in late.group_by_passage(passage_of):
        passages = read(rows)
        spans = [segment(passage) for passage in passages]
        cut = encoder.cut_passages([p.title for p in passages], [p.text for p in passages], spans)
        for batch in batches([len(passage.ids) for passage in cut], TOKENS[device]):
            ids, mask = pad([cut[i].ids for i in batch], encoder.pad_id)
            states_BTD = encoder.states(ids.to(device), mask.to(device)).float()
            for i, states in zip(batch.tolist(), states_BTD, strict=True):
                pairs, numbers = groups[i], torch.from_numpy(cut[i].sentence_of_token).to(device)
                pair_questions = questions[question_of[pairs]].to(device)
                scores = score_sentences(pair_questions, states[: len(numbers)], numbers, len(spans[i]), **how)
                yield pairs, spans[i], scores.cpu().numpy()
            advance(len(batch))


def match_sentences(
    hits: Hits, question_ids: Sequence[str], questions: Tensor, store: PassageStore, encoder: TextEncoder
) -> pa.Table:
    """Return a table of `MatchedSentence`, in the order of the hits; a passage of which nothing is read has no row."""
    question_of, place = np.nonzero(hits.rows >= 0)
    rows, best = hits.rows[question_of, place], {}
    with progress("retrieve sentences", len(np.unique(rows)), "passages") as advance:
        for pairs, spans, scores in score_passages(questions, question_of, rows, store.passages, encoder, advance):
            present = np.isfinite(scores).any(1)
            for pair, of_pair in zip(pairs[present].tolist(), scores[present], strict=True):
                sentence = int(np.nanargmax(of_pair))
                best[pair] = {**spans[sentence]._asdict(), "score": float(of_pair[sentence])}
    matched = [
        {"question_id": question_ids[question_of[i]], "passage_id": passage, "rank": int(place[i]) + 1, **best[i]}
        for i, passage in enumerate(store.ids(rows))
        if i in best
    ]
    return pa.Table.from_pylist(matched, schema=tables.schema(MatchedSentence))
