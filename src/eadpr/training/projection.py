"""MDR's linear layer and layer norm above the pooled state, in the files that sentence-transformers gives them."""

from pathlib import Path
from typing import Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from eadpr.runtime.files import write_json

LINEAR, NORM = "2_Dense", "3_LayerNorm"  # subfolders of an encoder's, by sentence-transformers' numbers
MODULES = ((LINEAR, "Dense"), (NORM, "LayerNorm"))
WEIGHTS = "model.safetensors"


class Projection(torch.nn.Module):
    """The `project` of MDR's encoders (Xiong et al., 2021), from D dimensions to D; new ones have random weights."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, states_BD: Tensor) -> Tensor:
        return self.norm(self.linear(states_BD).float()).float()

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Load the projection of an encoder's folder, None if it has none. Raises ValueError for files in part."""
        if not any((folder / name).exists() for name, _ in MODULES):
            return None
        try:
            weights = {**load_file(folder / LINEAR / WEIGHTS), **load_file(folder / NORM / WEIGHTS)}
            projection = cls(len(weights["linear.bias"]))
            projection.load_state_dict(weights)
        except (OSError, SafetensorError, LookupError, RuntimeError) as error:
            raise ValueError(f"{folder}: {LINEAR} and {NORM} hold no linear layer and norm of two hops") from error
        return projection

    def save(self, folder: Path) -> None:
        dim = self.linear.in_features
        identity = "torch.nn.modules.linear.Identity"
        shape = {"in_features": dim, "out_features": dim, "bias": True, "activation_function": identity}
        for name, config in ((LINEAR, shape), (NORM, {"dimension": dim})):
            part = "linear." if name == LINEAR else "norm."
            weights = {key: value for key, value in self.state_dict().items() if key.startswith(part)}
            (folder / name).mkdir(exist_ok=True)
            write_json(folder / name / "config.json", config)
            save_file(weights, folder / name / WEIGHTS, {"format": "pt"})
