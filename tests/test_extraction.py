"""Losses and decoding of the extractive reader, and what it learns from: by hand, and against naive loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eadpr.readers import selection
from eadpr.readers.inputs import NOWHERE
from eadpr.readers.scores import best_spans, selection_nll, span_nll
from eadpr.readers.selection import select_passages
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Fold, Positive
from tests.toy_records import question, write_ranking, write_records


def test_loss_of_selection_by_hand():
    assert selection_nll(torch.tensor([2.0, 1.0, 5.0]).log()).item() == pytest.approx(math.log(4))
    assert selection_nll(torch.tensor([7.0])).item() == 0.0


def draw_logits(data, passages: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Start and end logits and the text of each passage, which ends where padding begins."""
    tokens = data.draw(st.integers(1, 7))
    draw = np.random.default_rng(data.draw(st.integers(0, 1_000)))
    start, end = (torch.tensor(draw.integers(-2, 3, (passages, tokens)), dtype=torch.float64) for _ in range(2))
    first = draw.integers(0, tokens, passages)
    last = np.array([draw.integers(f, tokens + 1) for f in first])
    places = np.arange(tokens)
    return start, end, torch.from_numpy((places >= first[:, None]) & (places < last[:, None]))


@given(data=st.data())
def test_loss_and_gradient_equal_a_naive_loop(data):
    start, end, text = draw_logits(data, 1)
    inside = torch.nonzero(text[0]).flatten().tolist()
    if not inside:
        return
    pairs = [(s, e) for s in inside for e in inside if s <= e]
    spans = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4, unique=True))
    fast = [x[0].clone().requires_grad_() for x in (start, end)]
    slow = [x[0].clone().requires_grad_() for x in (start, end)]
    loss = span_nll(*fast, text[0], torch.tensor(spans))
    total = sum(slow[0][i].exp() for i in inside) * sum(slow[1][i].exp() for i in inside)
    naive = -torch.log(sum(slow[0][s].exp() * slow[1][e].exp() for s, e in spans) / total)
    torch.testing.assert_close(loss, naive)
    loss.backward()
    naive.backward()
    for fast_logits, slow_logits in zip(fast, slow, strict=True):
        torch.testing.assert_close(fast_logits.grad, slow_logits.grad, atol=1e-9, rtol=1e-6)


@given(data=st.data())
def test_best_spans_equal_a_naive_loop(data):
    passages, longest = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 9))
    start, end, text = draw_logits(data, passages)
    border = data.draw(st.integers(0, text.shape[1]))  # where the second passage of each path begins
    places = torch.where(text, (torch.arange(text.shape[1]) >= border).long(), NOWHERE)
    spans = best_spans(start, end, places, longest=longest)
    for p in range(passages):
        inside = torch.nonzero(text[p]).flatten().tolist()
        best = None
        for s in inside:
            for e in inside:
                if (
                    s <= e < s + longest
                    and places[p, s] == places[p, e]
                    and (best is None or start[p, s] + end[p, e] > best[2])
                ):
                    best = (s, e, start[p, s] + end[p, e])
        if best is None:
            assert spans[p] is None
        else:
            assert spans[p][:2] == best[:2]
            of_text = [x[p][text[p]].logsumexp(0) for x in (start, end)]
            assert spans[p].score == pytest.approx((best[2] - sum(of_text)).item(), abs=1e-5)


@pytest.mark.parametrize(("holds", "gold_page", "expected"), [
    ("0110", "0000", ([1, 2], [0, 3])),
    ("0110", "1010", ([2], [0, 3])),  # the answer on a gold page makes those elsewhere suspect
    ("0110", "1001", ([1, 2], [0, 3])),
    ("1" * 21, "0" * 21, (list(range(20)), [])),
    ("0000", "1111", ([], [])),
])  # fmt: skip
def test_selection_by_hand(holds, gold_page, expected):
    as_bools = [[c == "1" for c in word] for word in (holds, gold_page)]
    assert select_passages(*as_bools) == expected


@pytest.mark.parametrize(("positives", "negatives"), [(1, 50), (5, 50), (6, 60), (15, 150), (20, 150)])
def test_as_many_negatives_as_dpr_takes(positives, negatives):
    holds = [True] * positives + [False] * 180
    expected = list(range(positives)), list(range(positives, positives + negatives))
    assert select_passages(holds, [False] * 200) == expected


def test_training_questions_with_the_start_of_their_ranking_and_their_gold_titles(tmp_path):
    """Gold pages are those of given positives, not of BM25's; validation questions are not learnt from."""
    passages = [("a", "One", "x"), ("b", "", "y"), ("c", "Two", "z")]
    questions = [question(name, ["x"]) for name in ("given", "found", "held-out", "unranked")]
    write_records(tmp_path, passages=passages, questions=questions)
    roles = {q.id: "validation" if q.id == "held-out" else "train" for q in questions}
    folds = [Fold(name, role, int(name == "found")) for name, role in roles.items()]
    tables.write(tmp_path / "folds.parquet", Fold, folds)
    positives = [("given", "a", "given"), ("given", "b", "given"), ("found", "c", "bm25"), ("held-out", "c", "given")]
    tables.write(tmp_path / "positives.parquet", Positive, [Positive(*row, None) for row in positives])
    write_ranking(tmp_path, train={"given": ["c", "a", "b"], "found": ["b"], "held-out": ["a"]})
    store = PassageStore(tmp_path / "passages.parquet")
    entries = list(selection.read_training_questions(tmp_path, tmp_path, tmp_path / "train.parquet", store, depth=2))
    rows = [(entry.question.id, entry.paths, sorted(entry.gold_titles)) for entry in entries]
    assert rows == [("given", [(2,), (0,)], ["One"]), ("found", [(1,)], [])]
