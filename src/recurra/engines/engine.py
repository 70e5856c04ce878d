"""Engine: how the steps of a layer are run. Same answer, other speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.autograd import forward_ad

from recurra.cells import AnyCell, AnyState
from recurra.engines.resets import Resets
from recurra.padding import Padded


class DirectedCell(NamedTuple):
    """One cell about to read a batch in one direction."""

    cell: AnyCell
    state: AnyState  # before the first step it reads
    fixed: Any  # what cell.fixed returned for this sequence
    backward: bool = False  # from the last real step to the first
    resets: Resets | None = None  # where the state starts anew within a row


Layer: TypeAlias = Sequence[DirectedCell]
"""One reader, or two in opposite directions. How their outputs are merged is not an engine's business."""


class Reading(NamedTuple):
    """What one reader found."""

    outputs: Tensor  # (B, T, H): the first field of the state after each step, 0 on padding
    states: AnyState  # after the last step, fields (B, n); with every=True after each, (B, T, n), 0 on padding


class Work(NamedTuple):
    """All that the time of a layer is estimated from."""

    cell: type[AnyCell]  # the one inside all wrappers
    readers: int  # directions
    rows: int
    steps: int
    input_size: int
    hidden_size: int
    width: int  # how many numbers the recurrent products make for one row and step
    weights: int  # how many numbers the recurrent matrices hold
    resets: int  # how many there are in the row with the most
    training: bool  # whether gradients are recorded, and a backward pass will follow
    device: str
    dtype: torch.dtype
    autocast: bool
    threads: int
    has_compiler: bool
    graphed: bool = False  # whether it is recorded as a CUDA graph: launching its kernels then takes no time
    lower: torch.dtype | None = None  # the type that autocast computes products in


class Engine(Protocol):
    """A way to run a layer over a batch whose padding holds zeros."""

    name: str

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        """None: can do. Otherwise the reason in words, shown to the user."""

    def cost(self, work: Work) -> float:
        """Estimated seconds for a layer, if this engine can run it. Depends on nothing but the work."""

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        """Read the batch, one Reading per reader. Called only where `refusal` found no reason."""


class StackEngine(Engine, Protocol):
    """An engine that can also read a whole stack in one go, with less around it than layer by layer."""

    def reads_stack(self, cells: Sequence[Sequence[AnyCell]], x: Padded) -> bool:
        """Whether it can read this batch by these layers, each of them one cell or two in opposite directions."""

    def run_stack(
        self, cells: Sequence[Sequence[AnyCell]], values: Tensor, backward: Sequence[bool]
    ) -> tuple[Tensor, tuple[tuple[AnyState, ...], ...]]:
        """The outputs of the last layer, directions side by side, and the final states of all. Starts from
        `cell.start`; `backward` says of each direction whether it reads backward."""


def only_looped(x: Padded, layer: Layer = ()) -> str | None:
    """Why nothing but the loop can read this batch, in words; None where others can."""
    if any(reader.resets is not None and reader.resets.is_learned for reader in layer):
        return "only the loop supports gradients of a learned start state with resets"
    if not x.values.numel():
        return "there is no step to run"
    if forward_ad._current_level >= 0:
        return "only the loop supports forward-mode differentiation"
    if is_transformed():
        return "only the loop supports torch.func transforms (grad, vmap, jvp, jacrev, …)"
    return None


def is_transformed() -> bool:
    """Whether a transform of torch.func is at work, so that tensors are stand-ins without memory of their own."""
    return torch._C._functorch.peek_interpreter_stack() is not None
