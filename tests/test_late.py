"""Late interaction against a naive loop, and what the padding of rows may not change."""

import torch
from torch.nn.functional import cosine_similarity

from eadpr.training import late


def texts(lengths, dim=5, seed=0):
    """Return states, (B, T, D) with noise behind each text, and which of them are tokens of the text."""
    torch.manual_seed(seed)
    keep = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), dim), keep


def naive(questions, passages):
    """Score lists of token states, one pair of tokens at a time."""
    return torch.tensor(
        [
            [sum(max(cosine_similarity(a, b, dim=0) for b in passage) for a in question) / len(question) for passage in passages]
            for question in questions
        ]
    )  # fmt: skip


def test_late_scores_equal_a_naive_loop_over_tokens(monkeypatch):
    monkeypatch.setattr(late, "AT_ONCE", 40)  # several parts
    (questions, asked), (passages, read) = texts([2, 4, 3]), texts([3, 6, 1, 5], seed=1)
    expected = naive(
        [states[mask] for states, mask in zip(questions, asked, strict=True)],
        [states[mask] for states, mask in zip(passages, read, strict=True)],
    )
    scores = late.late_scores(late.token_rows(questions, asked, 9), late.token_rows(passages, read, 9), 5)
    torch.testing.assert_close(scores, expected)


def test_a_score_depends_neither_on_the_width_nor_on_where_the_left_out_tokens_stand():
    states, keep = texts([4, 4])
    keep[0] = torch.tensor([False, True, True, False])  # special tokens at both ends
    alone = late.token_rows(states[:1, 1:3], keep[:1, 1:3], 2)
    padded = late.token_rows(states, keep, 8)
    passages = late.token_rows(*texts([3, 2], seed=1), 4)
    torch.testing.assert_close(late.late_scores(padded, passages, 5)[:1], late.late_scores(alone, passages, 5))
    torch.testing.assert_close(late.late_scores(passages, padded, 5)[:, :1], late.late_scores(passages, alone, 5))


def test_scores_below_zero_are_not_lifted_by_padding():
    question = late.token_rows(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[True]]), 3)
    passage = late.token_rows(torch.tensor([[[-2.0, 0.0]]]), torch.tensor([[True]]), 3)
    assert late.late_scores(question, passage, 2).tolist() == [[-1.0]]


def test_a_text_without_tokens_scores_0_as_a_question():
    empty = late.token_rows(*texts([1]), 2) * 0
    assert late.late_scores(empty, late.token_rows(*texts([3], seed=1), 4), 5).tolist() == [[0.0]]


def test_only_the_matching_token_of_a_passage_gets_a_gradient():
    states = torch.tensor([[[1.0, 0.1], [0.1, 1.0]]], requires_grad=True)
    question = late.token_rows(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[True]]), 1)
    late.late_scores(question, late.token_rows(states, torch.ones(1, 2, dtype=torch.bool), 2), 2).sum().backward()
    assert states.grad[0, 0].abs().sum() > 0 and states.grad[0, 1].abs().sum() == 0
