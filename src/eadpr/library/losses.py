"""EADPR's losses (001, equations 3, 5, 7, 8) and ours for other trainers: of scores, and for sentence-transformers.

`EvidenceLoss` needs sentence-transformers for vectors of tokens alone; `cached` makes its gradient-cached twin.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from eadpr.training.config import Balance
from eadpr.training.losses import Terms, loss_terms, make_masks

# The roles of a dataset's columns, and how often each may stand there.
TIMES = {"question": (1, 1), "positive": (1, 1), "negative": (0, 99), "distractor": (0, 1), "placebo": (0, 1)}
ROLES = tuple(TIMES)
ALIASES = {"anchor": "question", "query": "question"}  # sentence-transformers' names

Ids = tuple[int, ...]  # the token ids of a text; () for a missing one


def evidence_loss(
    scores_QP: Tensor, distractors_Q: Tensor, placebos_Q: Tensor | None = None, *, present_P: Tensor | None = None,
    false_QP: Tensor | None = None, alike_Q: Tensor | None = None, lambda_: float = 1.0, tau1: float = 1.0,
    tau2: float = 1.0, balance: Balance | None = None, placebo: float = 0.0,
) -> Terms:  # fmt: skip
    """Compute the loss terms from any scores, late interaction's as well as dot products.

    `scores_QP` (B, B + B*H + B, or with placebos + B): each question's scores of the columns `[positives B | hard
    negatives B*H | distractors B | placebos B]`, in the order of the questions, the negatives of question i at i*H to
    i*H + H - 1. `distractors_Q` and `placebos_Q` (B,) bool are True for the questions that have one; a missing column
    holds any finite score. `present_P` (B + B*H,) bool: False for a missing hard negative. `false_QP` (B, columns
    before the placebos) bool: passages that are no negative of a question, as they hold its answer. `alike_Q` (B,)
    bool: distractor and placebo are one text to the encoder, and are not compared.

    `balance` is `loss.balance` in params.yaml, by default `both` with placebos, else `none`; the weights are EADPR's.
    Raises ValueError for another balance, and for columns that do not fit.
    """
    balance = balance or ("none" if placebos_Q is None else "both")
    if balance not in get_args(Balance):
        raise ValueError(f"balance is {balance!r}, expected one of {', '.join(get_args(Balance))}")
    count, columns = scores_QP.shape
    blocks = ["positives", "hard negatives", "distractors"] + ([] if placebos_Q is None else ["placebos"])
    if columns % count or columns < (len(blocks) - 1) * count:
        raise ValueError(f"scores of {count} questions and {columns} columns; expected {count} each of {blocks}")
    if placebos_Q is None and (balance != "none" or placebo):
        raise ValueError("balance and placebo need columns of placebos")
    passage_columns = columns - (len(blocks) - 2) * count  # columns before the distractors
    present_P = distractors_Q.new_ones(passage_columns) if present_P is None else present_P
    false_QP = distractors_Q.new_zeros(count, passage_columns + count) if false_QP is None else false_QP
    placebos_Q = distractors_Q.new_zeros(0) if placebos_Q is None else placebos_Q
    contrasts = [distractors_Q] if balance != "placebo" else []
    if balance != "none":
        contrasts.append(distractors_Q & (placebos_Q if alike_Q is None else placebos_Q & ~alike_Q))
    masks = make_masks(torch.cat([present_P, distractors_Q]), false_QP, torch.stack(contrasts), placebos_Q)
    return loss_terms(
        scores_QP, masks, form="paper", lambda_=lambda_, tau1=tau1, tau2=tau2, balance=balance, placebo=placebo
    )


class EvidenceLoss(nn.Module):
    """`evidence_loss` for `SentenceTransformerTrainer`, and by late interaction for `MultiVectorEncoderTrainer`.

    `roles` names the dataset's columns in order, all that sentence-transformers tells a loss: question (or anchor, or
    query), positive, any number of negatives, perhaps distractor and placebo. A missing text is the positive's own or
    empty, which samplers take for duplicates. A passage is no negative of a question whose positive it is, too.

    `similarity` and `scale` by default follow the model (cosine or meanmaxsim, 20; dot or maxsim, 1). All else is as in
    `evidence_loss`.
    """

    # For the model card that sentence-transformers writes.
    citation = Path(__file__).with_name("citation.bib").read_text(encoding="utf-8")

    def __init__(
        self, model: Any, roles: Sequence[str] = ROLES, *, similarity: str | None = None, scale: float | None = None,
        lambda_: float = 1.0, tau1: float = 1.0, tau2: float = 1.0, balance: Balance | None = None,
        placebo: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.model = model
        if (kind := getattr(model, "model_type", None)) == "CrossEncoder":
            raise ValueError("a CrossEncoder makes no vectors of a text; give its scores to `eadpr.evidence_loss`")
        self.by_tokens = kind == "MultiVectorEncoder"
        tokenizer = getattr(model, "tokenizer", None)
        if tokenizer is None or not hasattr(tokenizer, "all_special_ids"):
            raise ValueError("the model has no tokenizer of transformers, by which texts that are missing are known")
        # Read now, since on several devices a trainer replaces the model by a wrapper without tokenizer.
        self._special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id, tokenizer.mask_token_id}
        self.roles = tuple(ALIASES.get(role, role) for role in roles)
        for role in {*ROLES, *self.roles}:
            least, most = TIMES.get(role, (0, 0))
            if not least <= (times := self.roles.count(role)) <= most:
                raise ValueError(f"roles: {role} stands {times} times in {list(roles)}, expected {least} to {most}")
        normalises = isinstance(model, nn.Sequential) and type(model[-1]).__name__ == "Normalize"
        stated = "cosine" if normalises else getattr(model, "similarity_fn_name", None) or "cosine"
        self.similarity = similarity or (getattr(model, "similarity_fn_name", None) if self.by_tokens else stated)
        if self.similarity not in (expected := ("meanmaxsim", "maxsim") if self.by_tokens else ("cosine", "dot")):
            raise ValueError(f"similarity {self.similarity!r}: expected {' or '.join(expected)}")
        self.scale = scale if scale is not None else 20.0 if self.similarity == expected[0] else 1.0
        self.settings = {"lambda_": lambda_, "tau1": tau1, "tau2": tau2, "balance": balance, "placebo": placebo}

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        features = list(sentence_features)
        masks = self.text_masks(features)
        return self.of_vectors([self._encode(*column) for column in zip(self.roles, features, strict=True)], masks)

    def of_vectors(self, vectors: Sequence[Any], masks: dict[str, Tensor]) -> Tensor:
        """Compute the loss from the vectors of each column and the masks of their texts.

        A column's vectors are (B, D), or of T tokens (B, T, D) with a bool (B, T) that is True for those that count.
        """
        columns = self._by_role(vectors)
        (questions,) = columns["question"]
        scores = {role: [self._score(questions, passages) for passages in columns[role]] for role in ROLES[1:]}
        negatives = [torch.stack(scores["negative"], 2).flatten(1)] if scores["negative"] else []
        # Without distractors the positives stand there, masked.
        blocks = scores["positive"] + negatives + (scores["distractor"] or scores["positive"]) + scores["placebo"]
        arguments: dict[str, Any] = {**masks, **self.settings}
        return evidence_loss(self.scale * torch.cat(blocks, 1), **arguments).total

    def _encode(self, role: str, texts: dict[str, Any]) -> Any:
        if not self.by_tokens:
            return self.model(texts)["sentence_embedding"]
        output = self.model(dict(texts), task=texts.get("task", "query" if role == "question" else "document"))
        return output["token_embeddings"], output["attention_mask"].bool()

    def _score(self, questions: Any, passages: Any) -> Tensor:
        """Return each question's score of each passage, (B, B)."""
        if self.by_tokens:
            from sentence_transformers.util.similarity import maxsim

            masks = {"a_mask": questions[1], "b_mask": passages[1]}
            return maxsim(questions[0], passages[0], **masks, length_normalize=self.similarity == "meanmaxsim")
        if self.similarity == "cosine":
            questions, passages = (nn.functional.normalize(side, dim=-1) for side in (questions, passages))
        return questions @ passages.T

    def text_masks(self, features: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Return the masks of `evidence_loss`, from the tokens that the encoder gets of each text."""
        if len(features) != len(self.roles):
            raise ValueError(f"{len(features)} columns, but roles names {len(self.roles)}: {', '.join(self.roles)}")
        by_role = self._by_role([self._ids(column) for column in features])
        (questions,), (positives,) = by_role["question"], by_role["positive"]
        positives_of: dict[Ids, set[Ids]] = {}
        for question, positive in zip(questions, positives, strict=True):
            positives_of.setdefault(question, set()).add(positive)

        def present(role: str) -> list[bool]:
            (column,) = by_role[role] or [positives]
            return [bool(ids) and ids != positive for ids, positive in zip(column, positives, strict=True)]

        negatives, present_P = [], [True] * len(positives)
        for question, *row in zip(questions, *by_role["negative"], strict=True):
            negatives += row
            present_P += [bool(ids) and ids not in positives_of[question] for ids in row]
        texts = [*positives, *negatives, *positives]  # a distractor stems from its positive
        masks: dict[str, list[Any]] = {
            "distractors_Q": present("distractor"),
            "present_P": present_P,
            "false_QP": [[ids in positives_of[question] for ids in texts] for question in questions],
        }
        if by_role["placebo"]:
            masks["placebos_Q"] = present("placebo")
        if by_role["placebo"] and by_role["distractor"]:
            pairs = zip(*by_role["distractor"], *by_role["placebo"], strict=True)
            masks["alike_Q"] = [distractor == placebo for distractor, placebo in pairs]
        device = features[0]["input_ids"].device
        return {name: torch.tensor(mask, dtype=torch.bool, device=device) for name, mask in masks.items()}

    def _by_role(self, columns: Sequence[Any]) -> dict[str, list[Any]]:
        with_roles = list(zip(self.roles, columns, strict=True))
        return {name: [column for role, column in with_roles if role == name] for name in ROLES}

    def _ids(self, features: dict[str, Tensor]) -> list[Ids]:
        """Return the token ids of each text behind its prompt, () for an empty one, which has only special ones."""
        prompt = int(torch.as_tensor(features.get("prompt_length", 0)).flatten()[0])
        texts = []
        for ids, mask in zip(features["input_ids"].tolist(), features["attention_mask"].tolist(), strict=True):
            text = tuple(token for token, attended in zip(ids, mask, strict=True) if attended)[prompt:]
            texts.append(() if self._special.issuperset(text) else text)
        return texts

    def get_config_dict(self) -> dict[str, Any]:
        return {"roles": list(self.roles), "similarity": self.similarity, "scale": self.scale, **self.settings}


def cached(loss: EvidenceLoss, mini_batch_size: int = 32) -> nn.Module:
    """Return the same loss for batches beyond memory (Gao et al., 2021), by sentence-transformers' gradient cache."""
    from sentence_transformers import util
    from sentence_transformers.multi_vector_encoder import losses as of_tokens
    from sentence_transformers.sentence_transformer import losses as of_vectors

    kind: Any = of_vectors.CachedMultipleNegativesRankingLoss
    if loss.by_tokens:
        kind = of_tokens.CachedMultiVectorMultipleNegativesRankingLoss

    class CachedEvidenceLoss(kind):
        def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
            features = list(sentence_features)
            self.masks = loss.text_masks(features)
            return super().forward(features, labels)

        def calculate_loss(self, reps: list[list[Tensor]], masks: Any = None, *, with_backward: bool = False) -> Tensor:
            """Compute the loss of the columns' mini-batches; `masks` are those of tokens, else labels, unused."""
            columns = map(util.cat_padded_token_embeddings, reps, masks) if loss.by_tokens else map(torch.cat, reps)
            value = loss.of_vectors([*columns], self.masks)
            if with_backward:
                value.backward()
                value = value.detach()
            return value

        def get_config_dict(self) -> dict[str, Any]:
            return {**loss.get_config_dict(), "mini_batch_size": self.mini_batch_size}

    return CachedEvidenceLoss(loss.model, mini_batch_size=mini_batch_size)
