"""What cells are made of: weights, activations, and the two places where wrappers reach in."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.errors import ConfigError
from recurra.named import choose, imported

Init = Literal["glorot", "orthogonal", "uniform", "identity"]
Activation: TypeAlias = Callable[[Tensor], Tensor]
Leaf = TypeVar("Leaf", bound=tuple[Any, ...])


def _same(a: Tensor) -> Tensor:
    return a


ACTIVATIONS: dict[str, Activation] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "identity": _same,
}


class Product(NamedTuple):
    """The recurrent weights U for one sequence: U(h) is U (m ∘ h) with a mask m, or U h without one.

    weight  (G, H), or (H,) for a diagonal U
    mask    (B, H) or None

    A cell returns its U from `fixed` as a Product, so that a wrapper can drop weights or mask states.
    """

    weight: Tensor
    mask: Tensor | None = None

    def __call__(self, h: Tensor) -> Tensor:
        seen = h if self.mask is None else h * self.mask
        return seen * self.weight if self.weight.dim() == 1 else functional.linear(seen, self.weight)


class Drop(NamedTuple):
    """Candidate dropout: drop(ĉ) is m ∘ ĉ with a mask m of shape (B, H), or ĉ without one."""

    mask: Tensor | None = None

    def __call__(self, candidate: Tensor) -> Tensor:
        return candidate if self.mask is None else candidate * self.mask


def leaves(fixed: object, kind: type[Leaf]) -> list[Leaf]:
    """Every Product or Drop in what a cell's `fixed` returned, however deep."""
    if isinstance(fixed, kind):
        return [fixed]
    return [leaf for part in fixed for leaf in leaves(part, kind)] if isinstance(fixed, tuple) else []


def replaced(fixed: Any, kind: type[Leaf], change: Callable[[Leaf], Leaf]) -> Any:
    """The same `fixed` with every leaf of that kind changed."""
    if isinstance(fixed, kind):
        return change(fixed)
    if not isinstance(fixed, tuple):
        return fixed
    parts = [replaced(part, kind, change) for part in fixed]
    return type(fixed)(*parts) if hasattr(fixed, "_fields") else tuple(parts)


def activation_named(name: str, what: str = "activation") -> Activation:
    """φ by name: one of ACTIVATIONS, or your own function as 'package.module:function'.

    >>> activation_named("relu")(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if isinstance(name, str) and ":" in name:
        function = imported(name, what)
        if not callable(function):
            raise ConfigError(f"{what} = '{name}' is not a function.")
        return function
    return ACTIVATIONS[choose(ACTIVATIONS, name, what)]


def input_weights(input_size: int, hidden_size: int, *, gates: int, bias: bool, init: Init) -> nn.Linear:
    """W, the gates stacked: (gates·H, I) and a bias of zeros."""
    linear = nn.Linear(input_size, gates * hidden_size, bias=bias)
    initialise(linear.weight, gates, init)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


def state_weights(hidden_size: int, *, gates: int, init: Init) -> nn.Parameter:
    """U, the gates stacked: (gates·H, H)."""
    weight = nn.Parameter(torch.empty(gates * hidden_size, hidden_size))
    initialise(weight, gates, init)
    return weight


def initialise(weight: Tensor, gates: int, init: str) -> None:
    """Fill each gate's block by itself, as if it were a matrix of its own."""
    fill = {
        "glorot": nn.init.xavier_uniform_,
        "orthogonal": nn.init.orthogonal_,
        "uniform": lambda block: nn.init.uniform_(block, -(len(block) ** -0.5), len(block) ** -0.5),
        "identity": nn.init.eye_,
    }
    method = choose(fill, init, "initialisation")
    for block in weight.chunk(gates):
        fill[method](block.detach())


def set_bias(linear: nn.Linear, gate: int, gates: int, value: float) -> None:
    """Start one gate's bias at a value; nothing where there are no biases."""
    if linear.bias is not None:
        nn.init.constant_(linear.bias.chunk(gates)[gate].detach(), value)


def is_bare(product: nn.Module) -> bool:
    """Whether it is W x + b and no more, so that others may do it: no forward of its own, and nothing hung on it.

    >>> is_bare(nn.Linear(2, 3)), is_bare(nn.Identity())
    (True, False)
    """
    is_linear = isinstance(product, nn.Linear) and type(product).forward is nn.Linear.forward
    return is_linear and not product._forward_hooks and not product._forward_pre_hooks


def check_size(size: object, what: str) -> int:
    """A whole number of at least 1, numpy's among them, or a ConfigError."""
    try:
        number = 0 if isinstance(size, bool) else operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, but is {size!r}.")
    return number


def check_flag(value: object, what: str) -> bool:
    """True or false, or a ConfigError."""
    if not isinstance(value, bool):
        raise ConfigError(f"{what} must be true or false, but is {value!r}.")
    return value


def check_rate(rate: float, what: str, *, below_one: bool = True) -> float:
    """A probability, or a ConfigError."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1 or (below_one and rate == 1):
        raise ConfigError(f"{what} must be a probability from 0 to {'below 1' if below_one else '1'}, but is {rate!r}.")
    return float(rate)
