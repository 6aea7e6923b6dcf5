"""A process of several whose batches are one: its loss and gradients."""

import os
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from eadpr.library.losses import EvidenceLoss

ROLES = ("question", "positive", "negative", "distractor", "placebo")


class BagOfWords(nn.Module):
    """Means of random word vectors; 0 pads."""

    tokenizer = SimpleNamespace(all_special_ids=[0], unk_token_id=None, mask_token_id=None)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(30, 6)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        mask = features["attention_mask"][..., None]
        total = (self.words(features["input_ids"]) * mask).sum(1)
        return {"sentence_embedding": total / mask.sum(1).clamp(min=1)}


def batch(rows: slice) -> list[dict[str, torch.Tensor]]:
    """Of four questions: the last has the first's positive, the second no distractor, the third no negative."""
    ids = torch.randint(1, 30, (5, 4, 3), generator=torch.Generator().manual_seed(1))
    ids[1, 3] = ids[1, 0]
    ids[3, 1] = ids[2, 2] = 0
    return [{"input_ids": column[rows], "attention_mask": (column[rows] > 0).long()} for column in ids]


def gradient(rows: slice, *, gather: bool) -> tuple[float, torch.Tensor]:
    model = BagOfWords()
    loss = EvidenceLoss(model, ROLES, similarity="dot", gather_across_devices=gather)
    loss.model = nn.DataParallel(model)  # a wrapper, as a trainer puts there on several devices
    value = loss(batch(rows))
    value.backward()
    return value.item(), model.words.weight.grad


def process(rank: int, processes: int, folder: Path) -> None:
    torch.distributed.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=processes)
    each = 4 // processes
    value, own = gradient(slice(each * rank, each * (rank + 1)), gather=True)
    torch.distributed.all_reduce(own)
    torch.save((value, own / processes), folder / f"{rank}.pt")
    try:
        EvidenceLoss(BagOfWords(), ROLES, gather_across_devices=True)(batch(slice(0, 1 + rank)))
    except ValueError as error:
        (folder / f"{rank}.txt").write_text(str(error))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    os._exit(0)  # else threads of gloo that still run may abort Python's own way out
