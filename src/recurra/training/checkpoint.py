"""The state of a training on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def optimiser_tensors(optimiser: torch.optim.Optimizer, names: list[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The memory of an optimiser by the names of the parameters: tensors, and plain numbers."""
    tensors: dict[str, Tensor] = {}
    plain: dict[str, Any] = {}
    for number, state in optimiser.state_dict()["state"].items():
        for key, value in state.items():
            name = f"{names[number]}|{key}"
            if isinstance(value, Tensor):
                tensors[name] = value
            else:
                plain[name] = value
    return tensors, plain


def put_optimiser(
    optimiser: torch.optim.Optimizer, names: list[str], tensors: Mapping[str, Tensor], plain: Mapping[str, Any]
) -> None:
    """Give an optimiser back its memory; what others keep of other parameters is passed over."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in [*tensors.items(), *plain.items()]:
        parameter, _, key = name.rpartition("|")
        if parameter in names:
            state.setdefault(names.index(parameter), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
