"""The best of many scores, kept while they stream by: the running top-k of exact search."""

from __future__ import annotations

import torch

GROUP = 64  # neighbouring scores that are looked at one by one only if their maximum is high enough
SLACK = 3  # room for new scores, as a multiple of what is kept


class Reservoir:
    """Keeps for each of `questions` the `size` highest scores offered; of equal scores, those of the lowest rows.

    Blocks must be offered in ascending order of rows. New scores above a question's floor (its size-th best at the last
    cleaning) are appended to a buffer, which is cleaned when it is full: rarely, because the floor rises.
    """

    def __init__(self, questions: int, size: int, device: str) -> None:
        self.size = size
        capacity = (1 + SLACK) * size
        self._scores = torch.full((questions, capacity), -torch.inf, device=device)
        self._rows = torch.full((questions, capacity), -1, dtype=torch.int64, device=device)
        self._filled = torch.full((questions,), size, dtype=torch.int64, device=device)
        self._floor = torch.full((questions, 1), -torch.inf, device=device)
        self._seen = 0

    def offer(self, scores: torch.Tensor, first_row: int) -> None:
        """Take in scores (questions, n) of the rows first_row, first_row + 1, …"""
        if self._seen < self.size:
            self._merge(torch.arange(len(scores), device=scores.device), scores, first_row)
        else:
            self._append(scores, first_row)
        self._seen += scores.shape[1]

    def rows(self) -> torch.Tensor:
        """(questions, size) rows kept, ascending; -1 where fewer rows were offered."""
        return self._rows.gather(1, _best(self._scores, self.size))

    def _append(self, scores: torch.Tensor, first_row: int) -> None:
        question, column, score = _above(scores, self._floor)
        if self._overfull(question).any():
            everyone = torch.arange(len(scores), device=scores.device)
            best = _best(self._scores, self.size)
            self._replace(everyone, self._scores.gather(1, best), self._rows.gather(1, best))
            high = score > self._floor[question, 0]
            question, column, score = question[high], column[high], score[high]
            overfull = self._overfull(question)
            if overfull.any():
                (crowded,) = overfull.nonzero(as_tuple=True)
                self._merge(crowded, scores[crowded], first_row)
                fits = ~overfull[question]
                question, column, score = question[fits], column[fits], score[fits]
        counts = torch.bincount(question, minlength=len(scores))
        before = counts.cumsum(0) - counts
        place = torch.arange(len(question), device=scores.device) - before[question] + self._filled[question]
        self._scores[question, place] = score
        self._rows[question, place] = column + first_row
        self._filled += counts

    def _overfull(self, question: torch.Tensor) -> torch.Tensor:
        counts = torch.bincount(question, minlength=len(self._filled))
        return self._filled + counts > self._scores.shape[1]

    def _merge(self, questions: torch.Tensor, scores: torch.Tensor, first_row: int) -> None:
        """Clean the buffers of some questions together with all of their scores (len(questions), n)."""
        all_scores = torch.cat([self._scores[questions], scores], 1)
        best = _best(all_scores, self.size)
        capacity = self._rows.shape[1]
        known = self._rows[questions].gather(1, best.clamp(max=capacity - 1))
        rows = torch.where(best < capacity, known, best - capacity + first_row)
        self._replace(questions, all_scores.gather(1, best), rows)

    def _replace(self, questions: torch.Tensor, scores: torch.Tensor, rows: torch.Tensor) -> None:
        self._scores[questions, : self.size] = scores
        self._scores[questions, self.size :] = -torch.inf
        self._rows[questions, : self.size] = rows
        self._filled[questions] = self.size
        self._floor[questions] = scores.amin(1, keepdim=True)


def _best(scores: torch.Tensor, size: int) -> torch.Tensor:
    """Columns (n, size), ascending, of each line's highest scores; of those that tie for the last place the earliest.

    A line is longer than `size`.
    """
    best = scores.topk(size + 1, dim=1)
    columns = best.indices[:, :size].sort(1).values
    (tied,) = (best.values[:, size - 1] == best.values[:, size]).nonzero(as_tuple=True)
    if len(tied):
        columns[tied] = _earliest_best(scores[tied], best.values[tied, size - 1 : size], size)
    return columns


def _earliest_best(scores: torch.Tensor, last: torch.Tensor, size: int) -> torch.Tensor:
    """As `_best`, where the last place (its score: `last`, (n, 1)) is tied for."""
    above, tied = scores > last, scores == last
    keep = above | (tied & (tied.cumsum(1) <= size - above.sum(1, keepdim=True)))
    return keep.nonzero(as_tuple=True)[1].view(-1, size)


def _above(scores: torch.Tensor, floor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Question, column and score of every score above its question's floor, by question, then column."""
    rest = -scores.shape[1] % GROUP
    padded = torch.nn.functional.pad(scores, (0, rest), value=-torch.inf) if rest else scores
    groups = padded.view(-1, GROUP)
    per_question = padded.shape[1] // GROUP
    group = _places(groups.amax(1).view(-1, per_question) > floor)
    question = group // per_question
    near = groups.index_select(0, group)
    hit = _places(near > floor[question])
    which = hit // GROUP
    return question[which], group[which] % per_question * GROUP + hit % GROUP, near.view(-1)[hit]


def _places(mask: torch.Tensor) -> torch.Tensor:
    """Where a mask is true, in its flat order."""
    return mask.view(-1).nonzero().squeeze(1)
