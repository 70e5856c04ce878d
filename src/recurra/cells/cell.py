"""Cell: what one step of a recurrent network computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeAlias, TypeVar, final

from torch import Tensor, nn

from recurra.cells.weights import check_size

AnyState: TypeAlias = tuple[Tensor, ...]  # a NamedTuple of (B, n) tensors; the first field is what the next layer sees
S = TypeVar("S", bound=AnyState)
F = TypeVar("F")


class Cell(nn.Module, ABC, Generic[S, F]):
    """state_t = f(x_t, state_{t-1}; θ), with the same θ at every step.

    A cell defines what is computed in one step; an engine runs the steps. To write one, define its State, its parts,
    and whatever differs from the defaults; to modify an existing cell, wrap it (see wrappers/).

    >>> from typing import NamedTuple
    >>> import torch
    >>> class Leaky(NamedTuple):
    ...     h: torch.Tensor
    >>> class LeakyAverage(Cell[Leaky, tuple[()]]):
    ...     "h' = h / 2 + x / 2"
    ...     State = Leaky
    ...     def parts(self, inputs, state, fixed):
    ...         return Leaky(h=state.h / 2 + inputs / 2)
    >>> cell = LeakyAverage(1, 1)
    >>> cell.step(torch.ones(1, 1), cell.start(1, torch.ones(()))).h.item()
    0.5
    """

    State: type[S]
    """A NamedTuple of (B, n) tensors, batch first; its first field, h, is (B, H) and is what the next layer sees."""

    blendable: tuple[str, ...] | None = None
    """The fields of State that may be averaged with their former values; None: all of them."""

    reads_gaps: bool = False
    """Whether it has an option `variables`, and then reads [x; m; δ; u] as GRU-D does: values, masks, elapsed time."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        self.hidden_size = check_size(hidden_size, "hidden_size")

    def start(self, rows: int, like: Tensor) -> S:
        """The state before the first step: zeros with the type and device of `like`."""
        return self.State(*(like.new_zeros(rows, self.hidden_size) for _ in fields(self.State)))

    def fixed(self, rows: int, like: Tensor) -> F:
        """Values that are constant over a sequence, such as recurrent weights and masks; called once per sequence."""
        return ()  # type: ignore[return-value]  # () is the F of a cell that does not override this

    def project(self, x: Tensor, fixed: F) -> Tensor:
        """Everything that does not need the state, for all steps at once: (B, ..., I) -> (B, ..., P)."""
        return x

    @abstractmethod
    def parts(self, inputs: Tensor, state: S, fixed: F) -> AnyState:
        """The equations: every named value of one step as a NamedTuple, including the fields of State.

        `inputs` is one step of what `project` returned, (B, P).
        """

    def coefficients(self, inputs: Tensor, fixed: F) -> tuple[Tensor, Tensor] | None:
        """The decay and inflow of a step that is linear in its only state, h' = decay ∘ h + inflow; otherwise None.

        `inputs` is what `project` returned for some steps, (B, T, P); both must broadcast to (B, T, H).
        A cell that returns them can be run by a parallel scan, with `parts` for a single step.
        """
        return None

    @final
    def step(self, inputs: Tensor, state: S, fixed: F | tuple[()] = ()) -> S:
        """The state after one step."""
        parts = self.parts(inputs, state, fixed)  # type: ignore[arg-type]  # () where F is ()
        return self.State(*(getattr(parts, name) for name in fields(self.State)))

    @property
    def name(self) -> str:
        """The name of this cell in a config file: 'lstm', or 'my.lab:MyCell'."""
        home, _, file = type(self).__module__.rpartition(".")
        is_ours = __name__.rpartition(".")[0] in (home, home.rpartition(".")[0])
        return file if is_ours else f"{type(self).__module__}:{type(self).__name__}"

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


AnyCell: TypeAlias = Cell[Any, Any]


def fields(named: type[tuple[Any, ...]] | tuple[Any, ...]) -> tuple[str, ...]:
    """The field names of a NamedTuple, class or value."""
    names: tuple[str, ...] = named._fields  # type: ignore[union-attr]  # every NamedTuple has them
    return names
