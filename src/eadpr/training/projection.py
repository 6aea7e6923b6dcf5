"""Layers above the pooled state, in sentence-transformers' files: Dense modules, and a norm behind them as MDR has."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from eadpr.runtime.files import read_json, write_json
from eadpr.training.self_description import WEIGHTS, DenseShape

IDENTITY = "torch.nn.modules.linear.Identity"


class Projection(torch.nn.Module):
    """Linear layers, each with tanh or no activation, and a norm where `norm`; new ones have random weights."""

    def __init__(self, shapes: Sequence[DenseShape], *, norm: bool = False) -> None:
        super().__init__()
        self.shapes = shapes
        self.dim = shapes[-1].out_features
        self.linears = torch.nn.ModuleList(
            torch.nn.Linear(shape.in_features, shape.out_features, bias=shape.bias) for shape in shapes
        )
        self.norm = torch.nn.LayerNorm(self.dim) if norm else None

    def forward(self, states_BD: torch.Tensor) -> torch.Tensor:
        for shape, linear in zip(self.shapes, self.linears, strict=True):
            states_BD = linear(states_BD).float()
            if shape.activation_function != IDENTITY:
                states_BD = torch.tanh(states_BD)
        return states_BD if self.norm is None else self.norm(states_BD).float()

    @classmethod
    def load(cls, folders: Sequence[Path], norm: Path | None = None) -> Self:
        """Load the Dense modules of `folders`, in order, and the norm of a folder."""
        shapes = [DenseShape.model_validate(read_json(folder / "config.json")) for folder in folders]
        projection = cls(shapes, norm=norm is not None)
        parts = dict(zip(folders, projection.linears, strict=True)) | ({norm: projection.norm} if norm else {})
        for folder, part in parts.items():
            try:
                weights = load_file(folder / WEIGHTS)
                part.load_state_dict({name.rpartition(".")[2]: weight.float() for name, weight in weights.items()})
            except (OSError, SafetensorError, RuntimeError) as error:
                raise ValueError(f"{folder / WEIGHTS} holds no weights of its config.json ({error})") from error
        return projection

    @property
    def parts(self) -> Sequence[tuple[str, str]]:
        """The folder and the kind of each module of sentence-transformers, by its numbers."""
        kinds = ["Dense"] * len(self.shapes) + ["LayerNorm"] * (self.norm is not None)
        return [(f"{number}_{kind}", kind) for number, kind in enumerate(kinds, 2)]

    def save(self, folder: Path) -> None:
        fields = {"in_features", "out_features", "bias", "activation_function"}
        modules = [("linear", linear, shape.model_dump(include=fields))
                   for linear, shape in zip(self.linears, self.shapes, strict=True)]  # fmt: skip
        if self.norm is not None:
            modules.append(("norm", self.norm, {"dimension": self.dim}))
        for (name, _), (prefix, module, config) in zip(self.parts, modules, strict=True):
            write_json(folder / name / "config.json", config)
            weights = {f"{prefix}.{key}": value.contiguous() for key, value in module.state_dict().items()}
            save_file(weights, folder / name / WEIGHTS, {"format": "pt"})


def mdr_projection(dim: int) -> Projection:
    """Return a new `project` of MDR's encoders (Xiong et al., 2021): a linear layer from D to D and a norm."""
    return Projection([DenseShape(in_features=dim, out_features=dim, activation_function=IDENTITY)], norm=True)


def load_projection(folder: Path) -> Projection | None:
    """Load the layers of a folder that this package wrote, None if it has none."""
    modules = read_json(folder / "modules.json") if (folder / "modules.json").exists() else []
    paths = [folder / module["path"] for module in modules]
    dense, norms = ([path for path in paths if path.name.endswith(kind)] for kind in ("_Dense", "_LayerNorm"))
    return Projection.load(dense, *norms) if dense else None
