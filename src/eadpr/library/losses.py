"""EADPR's losses (001, equations 3, 5, 7, 8) and ours for other trainers: of scores, and for sentence-transformers.

`EvidenceLoss` needs nothing of sentence-transformers; `cached` makes its gradient-cached twin.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from eadpr.training.config import Balance
from eadpr.training.losses import Masks, Terms, loss_terms

__all__ = ["EvidenceLoss", "Terms", "cached", "evidence_loss"]

# Of a dataset's columns.
ROLES = ("question", "positive", "negative", "distractor", "placebo")


def evidence_loss(
    scores_QP: Tensor,
    distractors_Q: Tensor,
    placebos_Q: Tensor | None = None,
    *,
    present_P: Tensor | None = None,
    false_QP: Tensor | None = None,
    alike_Q: Tensor | None = None,
    lambda_: float = 1.0,
    tau1: float = 1.0,
    tau2: float = 1.0,
    balance: Balance | None = None,
    placebo: float = 0.0,
) -> Terms:
    """The terms of the loss of any scores, late interaction's as well as dot products.

    `scores_QP` (B, B + B*H + B, or with placebos + B): each question's scores of the columns `[positives B | hard
    negatives B*H | distractors B | placebos B]`, in the order of the questions, the negatives of question i at i*H to
    i*H + H - 1. `distractors_Q` and `placebos_Q` (B,) bool say who has one; a missing column holds any finite score.
    `present_P` (B + B*H,) bool: False where a hard negative is missing. `false_QP` (B, columns before the placebos)
    bool: passages that are no negative of a question, as they hold its answer. `alike_Q` (B,) bool: distractor and
    placebo are one text to the encoder, and are not compared.

    `balance` as `loss.balance` in params.yaml, by default `both` with placebos, else `none`; the weights are those of
    EADPR. Raises ValueError for shapes that do not fit.
    """
    balance = balance or ("none" if placebos_Q is None else "both")
    _check(scores_QP, placebos_Q, balance, placebo)
    masks = _masks(scores_QP, distractors_Q, placebos_Q, present_P, false_QP, alike_Q, balance)
    return loss_terms(
        scores_QP, masks, form="paper", lambda_=lambda_, tau1=tau1, tau2=tau2, balance=balance, placebo=placebo
    )  # fmt: skip


def _check(scores_QP: Tensor, placebos_Q: Tensor | None, balance: Balance, placebo: float) -> None:
    (count, columns), blocks = scores_QP.shape, 2 + (placebos_Q is not None)
    if columns % count or columns < blocks * count:
        raise ValueError(
            f"scores of {count} questions and {columns} columns; expected positives, hard negatives,"
            f" distractors{', placebos' * (blocks == 3)}, each a multiple of {count}"
        )
    if placebos_Q is None and (balance != "none" or placebo):
        raise ValueError("balance and placebo need columns of placebos")


def _masks(
    scores_QP: Tensor,
    distractors_Q: Tensor,
    placebos_Q: Tensor | None,
    present_P: Tensor | None,
    false_QP: Tensor | None,
    alike_Q: Tensor | None,
    balance: Balance,
) -> Masks:
    count, device = len(scores_QP), scores_QP.device
    others = scores_QP.shape[1] - (1 + (placebos_Q is not None)) * count
    allowed_QP = torch.ones(count, others + count, dtype=torch.bool, device=device)
    if present_P is not None:
        allowed_QP[:, :others] &= present_P
    allowed_QP[:, others:] &= distractors_Q
    if false_QP is not None:
        allowed_QP &= ~false_QP | _owned(count, others // count - 1, device)
    negatives_QN = allowed_QP[:, :others].clone()
    negatives_QN.fill_diagonal_(False)
    contrasts = [distractors_Q] if balance != "placebo" else []
    if balance != "none" and placebos_Q is not None:
        both_Q = distractors_Q & placebos_Q
        contrasts.append(both_Q if alike_Q is None else both_Q & ~alike_Q)
    none = torch.zeros(0, dtype=torch.bool, device=device)
    placebos_Q = none if placebos_Q is None else placebos_Q
    return Masks(negatives_QN, allowed_QP[None, :, others:], torch.stack(contrasts), placebos_Q)


def _owned(count: int, hard: int, device: torch.device) -> Tensor:
    """(B, columns before the placebos): the column belongs to the question."""
    own = torch.arange(count, device=device)
    return torch.cat([own, own.repeat_interleave(hard), own]) == own[:, None]


class EvidenceLoss(nn.Module):
    """`evidence_loss` for `SentenceTransformerTrainer`.

    `roles` says what the columns of the dataset are, in their order: question, positive, any number of negatives, and
    perhaps distractor and placebo; sentence-transformers tells a loss nothing but the order. A text that is missing is
    empty or the positive's own. A passage of one question that is another one's positive is no negative of that one.

    With `gather_across_devices` the batches of all processes, of one size, are one: the value and, once gradients are
    averaged over processes as DistributedDataParallel does, the gradients are those of that batch in one process.

    `similarity` and `scale` by default as the model's (cosine, 20; or dot, 1). The other settings are those of
    `evidence_loss`.
    """

    def __init__(
        self,
        model: nn.Module,
        roles: Sequence[str] = ROLES,
        *,
        similarity: str | None = None,
        scale: float | None = None,
        gather_across_devices: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.model: Any = model
        tokenizer: Any = getattr(model, "tokenizer", None)
        if not hasattr(tokenizer, "all_special_ids"):
            raise ValueError("the model has no tokenizer of transformers, by which texts that are missing are known")
        # Taken now, since on several devices a trainer puts a wrapper without tokenizer in the place of the model.
        self._special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id, tokenizer.mask_token_id}
        self.roles = _checked(roles)
        self.similarity = similarity or getattr(model, "similarity_fn_name", None) or "cosine"
        if self.similarity not in ("cosine", "dot"):
            raise ValueError(f"similarity {self.similarity!r}: expected cosine or dot")
        self.scale = scale if scale is not None else 20.0 if self.similarity == "cosine" else 1.0
        self.gather_across_devices = gather_across_devices
        self.settings = settings

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        features = list(sentence_features)
        given = self.given(features)
        return self.of_vectors([self.model(one)["sentence_embedding"] for one in features], given)

    def of_vectors(self, vectors: Sequence[Tensor], given: dict[str, Any]) -> Tensor:
        """The loss of the columns' vectors, each (B, D)."""
        if self.gathers:
            from torch.distributed.nn.functional import all_gather  # not in every build of torch

            # Its backward adds up what all processes want of a vector: all of them compute the whole loss.
            vectors = [torch.cat(all_gather(one)) for one in vectors]
        count, by_role = len(vectors[0]), self.by_role(vectors)
        negatives = by_role["negative"]
        columns = [*by_role["positive"], *([torch.stack(negatives, 1).flatten(0, 1)] if negatives else [])]
        columns += by_role["distractor"] or by_role["positive"]  # nobody has one
        columns += by_role["placebo"]
        passages, (questions,) = torch.cat(columns), by_role["question"]
        if self.similarity == "cosine":
            questions, passages = (nn.functional.normalize(one, dim=-1) for one in (questions, passages))
        terms = evidence_loss(self.scale * questions @ passages.T, **given, **self.settings)
        if not terms.total.isfinite():
            raise ValueError(f"the loss of a batch of {count} questions is {terms.total.item()}")
        return terms.total

    def given(self, features: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Which texts are there, by the tokens that the encoder gets of them."""
        if len(features) != len(self.roles):
            raise ValueError(f"{len(features)} columns, but roles names {len(self.roles)}: {', '.join(self.roles)}")
        by_role = self.by_role(self._of_all([self._inputs(one) for one in features]))
        (questions,), (positives,) = by_role["question"], by_role["positive"]
        device, count = features[0]["input_ids"].device, len(positives)

        def there(role: str) -> list[bool]:
            (own,) = by_role[role] or [positives]
            return [bool(ids) and ids != positive for ids, positive in zip(own, positives, strict=True)]

        negatives = [ids for of_one in zip(*by_role["negative"], strict=True) for ids in of_one]
        keys = [*positives, *negatives, *positives]  # a distractor stems from its positive
        of_question: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for question, positive in zip(questions, positives, strict=True):
            of_question.setdefault(question, set()).add(positive)
        hard = len(by_role["negative"])
        own = [of_question[questions[i // hard]] for i in range(len(negatives))]
        present = [True] * count + [bool(ids) and ids not in found for ids, found in zip(negatives, own, strict=True)]
        found = {
            "distractors_Q": there("distractor"),
            "present_P": present,
            "false_QP": [[key in of_question[question] for key in keys] for question in questions],
        }
        if by_role["placebo"]:
            found["placebos_Q"] = there("placebo")
            if by_role["distractor"]:
                pairs = zip(*by_role["distractor"], *by_role["placebo"], strict=True)
                found["alike_Q"] = [one == other for one, other in pairs]
        return {name: torch.tensor(values, dtype=torch.bool, device=device) for name, values in found.items()}

    @property
    def gathers(self) -> bool:
        return self.gather_across_devices and torch.distributed.is_available() and torch.distributed.is_initialized()

    def _of_all(self, columns: list[list[tuple[int, ...]]]) -> list[list[tuple[int, ...]]]:
        """The rows of all processes, in their order."""
        if not self.gathers:
            return columns
        found: list[Any] = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(found, columns)
        if len(sizes := {len(of[0]) for of in found}) > 1:
            raise ValueError(
                f"gather_across_devices: processes have batches of {sorted(sizes)} rows; drop the last one"
            )
        return [[row for of in found for row in of[column]] for column in range(len(columns))]

    def by_role(self, columns: Sequence[Any]) -> dict[str, list[Any]]:
        return {name: [one for one, role in zip(columns, self.roles, strict=True) if role == name] for name in ROLES}

    def _inputs(self, features: dict[str, Tensor]) -> list[tuple[int, ...]]:
        """The token ids of each text; none of an empty one, which has special ones and those of a prompt alone."""
        begin = int(torch.as_tensor(features.get("prompt_length", 0)).flatten()[0])
        rows = zip(features["input_ids"].tolist(), features["attention_mask"].tolist(), strict=True)
        texts = (tuple(i for i, counts in zip(ids, mask, strict=True) if counts) for ids, mask in rows)
        return [() if self._special.issuperset(ids[begin:]) else ids for ids in texts]

    def get_config_dict(self) -> dict[str, Any]:
        return {"roles": list(self.roles), "similarity": self.similarity, "scale": self.scale} | {
            "gather_across_devices": self.gather_across_devices,
            **self.settings,
        }


def _checked(roles: Sequence[str]) -> tuple[str, ...]:
    for role in ROLES:
        least, most = {"question": (1, 1), "positive": (1, 1), "negative": (0, math.inf)}.get(role, (0, 1))
        if not least <= roles.count(role) <= most:
            raise ValueError(f"roles: {role} stands {roles.count(role)} times in {list(roles)}")
    if unknown := set(roles) - set(ROLES):
        raise ValueError(f"roles: {min(unknown)!r} is none of {', '.join(ROLES)}")
    return tuple(roles)


def cached(loss: EvidenceLoss, mini_batch_size: int = 32) -> nn.Module:
    """The same loss for batches beyond memory (Gao et al., 2021), by sentence-transformers' own gradient cache."""
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

    class CachedEvidenceLoss(CachedMultipleNegativesRankingLoss):
        def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
            features = list(sentence_features)
            self.evidence_given = loss.given(features)
            return self.forward_cached(features, labels)

        def calculate_loss(
            self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
        ) -> Tensor:
            found = loss.of_vectors([torch.cat(column) for column in reps], self.evidence_given)
            if with_backward:
                found.backward()
                found = found.detach()
            return found

        def get_config_dict(self) -> dict[str, Any]:
            return {**loss.get_config_dict(), "mini_batch_size": self.mini_batch_size}

    return CachedEvidenceLoss(loss.model, mini_batch_size=mini_batch_size)
