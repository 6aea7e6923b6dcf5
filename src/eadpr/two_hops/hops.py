"""Queries of two hops (MDR: Xiong et al., 2021): hop 2 asks the question again, with the text found at hop 1."""

from collections.abc import Sequence

import numpy as np

from eadpr.storage.passages import PassageStore
from eadpr.training.encoder import TOKENISED_AT_ONCE, TextEncoder
from eadpr.training.pretrained import check_positions

SETTINGS = "multihop.json"  # with the encoders: the length of hop 2's query


def without_question_mark(question: str) -> str:
    """Strip the question mark at the end, as MDR does."""
    return question.strip().removesuffix("?").strip()


def hop_texts(store: PassageStore, rows: Sequence[int] | np.ndarray) -> list[str]:
    """Return the part of hop 2's query from each passage: its text, or the title if the text is empty."""
    pairs = zip(store.texts(rows), store.titles(rows), strict=True)
    return [text.strip() or title.strip() for text, title in pairs]


def second_ids(encoder: TextEncoder, questions: Sequence[str], texts: Sequence[str], tokens: int) -> list[np.ndarray]:
    """Return token ids (int32) of question and hop-1 text as a pair, longest cut first to `tokens`; joined by a space
    where the tokenizer writes nothing between a pair."""
    check_positions(encoder.model, "two_hop.query_tokens", tokens)
    ids: list[np.ndarray] = []
    for start in range(0, len(questions), TOKENISED_AT_ONCE):
        part = slice(start, start + TOKENISED_AT_ONCE)
        pairs = list(zip(encoder.question_texts(questions[part]), texts[part], strict=True))
        rows = encoder.ids(pairs if encoder.separates_pairs else [" ".join(pair) for pair in pairs], tokens)
        ids += [np.array(row, np.int32) for row in rows]
    return ids
