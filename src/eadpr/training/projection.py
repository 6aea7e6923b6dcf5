"""Layers above the pooled state, in sentence-transformers' files: MDR's linear layer and norm, or Dense modules."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from eadpr.runtime.files import read_json, write_json
from eadpr.training.self_description import WEIGHTS, DenseShape

LINEAR, NORM = "2_Dense", "3_LayerNorm"  # subfolders of an encoder's, by sentence-transformers' numbers
IDENTITY = "torch.nn.modules.linear.Identity"
MODULES = ((LINEAR, "Dense"), (NORM, "LayerNorm"))


class Projection(torch.nn.Module):
    """The `project` of MDR's encoders (Xiong et al., 2021), from D dimensions to D; new ones have random weights."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.linear = torch.nn.Linear(dim, dim)
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, states_BD: Tensor) -> Tensor:
        return self.norm(self.linear(states_BD).float()).float()

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load the projection of an encoder's folder. Raises ValueError for files in part."""
        try:
            weights = {**load_file(folder / LINEAR / WEIGHTS), **load_file(folder / NORM / WEIGHTS)}
            projection = cls(len(weights["linear.bias"]))
            projection.load_state_dict(weights)
        except (OSError, SafetensorError, LookupError, RuntimeError) as error:
            raise ValueError(f"{folder}: {LINEAR} and {NORM} hold no linear layer and norm of two hops") from error
        return projection

    @property
    def parts(self) -> Sequence[tuple[str, str]]:
        """The folder and the kind of each module of sentence-transformers."""
        return MODULES

    def save(self, folder: Path) -> None:
        shape = {"in_features": self.dim, "out_features": self.dim, "bias": True, "activation_function": IDENTITY}
        for name, config in ((LINEAR, shape), (NORM, {"dimension": self.dim})):
            part = "linear." if name == LINEAR else "norm."
            weights = {key: value for key, value in self.state_dict().items() if key.startswith(part)}
            _write_module(folder / name, config, weights)


class DenseLayers(torch.nn.Module):
    """Dense modules of sentence-transformers: linear layers, each with an activation or none."""

    def __init__(self, shapes: Sequence[DenseShape]) -> None:
        super().__init__()
        self.shapes = shapes
        self.dim = shapes[-1].out_features
        self.linears = torch.nn.ModuleList(
            torch.nn.Linear(shape.in_features, shape.out_features, bias=shape.bias) for shape in shapes
        )

    def forward(self, states_BD: Tensor) -> Tensor:
        for shape, linear in zip(self.shapes, self.linears, strict=True):
            states_BD = linear(states_BD).float()
            if shape.activation_function != IDENTITY:
                states_BD = torch.tanh(states_BD)
        return states_BD

    @classmethod
    def load(cls, folders: Sequence[Path]) -> Self:
        """Load the modules of these folders, in order. Raises ValueError for weights of another shape."""
        layers = cls([DenseShape.model_validate(read_json(folder / "config.json")) for folder in folders])
        for folder, linear in zip(folders, layers.linears, strict=True):
            try:
                weights = load_file(folder / WEIGHTS)
                linear.load_state_dict({key.removeprefix("linear."): value.float() for key, value in weights.items()})
            except (OSError, SafetensorError, RuntimeError) as error:
                raise ValueError(f"{folder / WEIGHTS} holds no weights of its config.json ({error})") from error
        return layers

    @property
    def parts(self) -> Sequence[tuple[str, str]]:
        """The folder and the kind of each module of sentence-transformers."""
        return [(f"{number}_Dense", "Dense") for number, _ in enumerate(self.shapes, 2)]

    def save(self, folder: Path) -> None:
        for (name, _), shape, linear in zip(self.parts, self.shapes, self.linears, strict=True):
            weights = {f"linear.{key}": value.contiguous() for key, value in linear.state_dict().items()}
            config = shape.model_dump(include={"in_features", "out_features", "bias", "activation_function"})
            _write_module(folder / name, config, weights)


def load_layers(folder: Path) -> Projection | DenseLayers | None:
    """Load the layers of a folder that this package wrote, None if it has none. Raises ValueError for files in part."""
    modules = read_json(folder / "modules.json") if (folder / "modules.json").exists() else []
    paths = [module["path"] for module in modules]
    if NORM in paths:
        return Projection.load(folder)
    dense = [folder / path for path in paths if path.endswith("_Dense")]
    return DenseLayers.load(dense) if dense else None


def _write_module(folder: Path, config: dict[str, object], weights: dict[str, Tensor]) -> None:
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config)
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
