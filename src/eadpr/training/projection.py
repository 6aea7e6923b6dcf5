"""Layers above the pooled state, in sentence-transformers' files of Dense modules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_file, save_file

from eadpr.runtime.files import read_json, write_json
from eadpr.training.pretrained import as_value_error
from eadpr.training.self_description import WEIGHTS, DenseShape

IDENTITY = "torch.nn.modules.linear.Identity"


class Projection(torch.nn.Module):
    """Linear layers, each with tanh or no activation; new ones have random weights."""

    def __init__(self, shapes: Sequence[DenseShape]) -> None:
        super().__init__()
        self.shapes = shapes
        self.dim = shapes[-1].out_features
        self.linears = torch.nn.ModuleList(
            torch.nn.Linear(shape.in_features, shape.out_features, bias=shape.bias) for shape in shapes
        )

    def forward(self, states_BD: torch.Tensor) -> torch.Tensor:
        for shape, linear in zip(self.shapes, self.linears, strict=True):
            states_BD = linear(states_BD).float()
            if shape.activation_function != IDENTITY:
                states_BD = torch.tanh(states_BD)
        return states_BD

    @classmethod
    def load(cls, folders: Sequence[Path]) -> Self:
        """Load the Dense modules of `folders`, in order."""
        projection = cls([DenseShape.model_validate(read_json(folder / "config.json")) for folder in folders])
        for folder, part in zip(folders, projection.linears, strict=True):
            with as_value_error(f"{folder / WEIGHTS} holds no weights of its config.json"):
                weights = load_file(folder / WEIGHTS)
                part.load_state_dict({name.rpartition(".")[2]: weight.float() for name, weight in weights.items()})
        return projection

    def save(self, folder: Path) -> list[tuple[str, str]]:
        """Write each layer; return its folder and kind, numbered as sentence-transformers' modules are."""
        fields = {"in_features", "out_features", "bias", "activation_function"}
        names = [f"{number}_Dense" for number in range(2, 2 + len(self.shapes))]
        for name, linear, shape in zip(names, self.linears, self.shapes, strict=True):
            write_json(folder / name / "config.json", shape.model_dump(include=fields))
            weights = {f"linear.{key}": value.contiguous() for key, value in linear.state_dict().items()}
            save_file(weights, folder / name / WEIGHTS, {"format": "pt"})
        return [(name, "Dense") for name in names]
