"""A forecaster in torch as the reader of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.cells.cell import fields
from recurra.data.store import Encoded
from recurra.forecasts.stream import STATE, Decoding
from recurra.models.forecast import Forecast
from recurra.models.forecaster import Forecaster
from recurra.models.series_batch import batched
from recurra.padding import fitted
from recurra.stacks.recurrent import States


class Kept(NamedTuple):
    """What a network keeps of a stream."""

    states: States | None  # before the last step
    memory: Tensor | None  # features of the steps before the last, as far as forecasts look back


class NetworkReader:
    """The network of a run."""

    def __init__(self, model: Forecaster) -> None:
        self.model = model

    @property
    def reach(self) -> int:
        return self.model.reach

    def read(self, row: Encoded, kept: Kept | None, *, new: int, decoding: Decoding) -> tuple[Forecast, Kept]:
        before = Kept(None, None) if kept is None else kept
        forecast, states, memory = self.model.go_on(
            fitted(batched([row]), self.model),
            before.states,
            before.memory,
            new=new,
            horizon=decoding.horizon,
            paths=decoding.paths,
            seed=decoding.seed,
        )
        return forecast, Kept(states, memory)

    def arrays(self, kept: Kept) -> dict[str, NDArray[Any]]:
        memory = {} if kept.memory is None else {"memory": kept.memory}
        named = {**memory, **named_states(() if kept.states is None else kept.states)}
        return {name: tensor.cpu().numpy() for name, tensor in named.items()}

    def kept(self, arrays: Mapping[str, NDArray[Any]]) -> Kept:
        like = next(self.model.parameters())

        def tensor(name: str) -> Tensor:
            return torch.from_numpy(arrays[name].copy()).to(like.device)

        memory = tensor("memory") if "memory" in arrays else None  # a program that looks at no features keeps none
        if not any(name.startswith(STATE) for name in arrays):
            return Kept(None, memory)
        states = tuple(
            tuple(
                type(state)(*(tensor(state_name(layer, direction, name)) for name in fields(state)))
                for direction, state in enumerate(directions)
            )
            for layer, directions in enumerate(self.model.stack.start(1, like))
        )
        return Kept(states, memory)


def named_states(states: States) -> dict[str, Tensor]:
    """Every tensor of the states of all layers, by the name that it has in a saved stream and in a program."""
    return {
        state_name(layer, direction, name): field
        for layer, directions in enumerate(states)
        for direction, state in enumerate(directions)
        for name, field in zip(fields(state), state, strict=True)
    }


def state_name(layer: int, direction: int, field: str) -> str:
    """
    >>> state_name(0, 1, "h")
    'state_0_1_h'
    """
    return f"{STATE}{layer}_{direction}_{field}"
