"""The Elman network whose recurrent matrix stays orthogonal, or near it, while it learns."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from recurra.cells.cell import Cell
from recurra.cells.elman import ElmanFixed, ElmanState
from recurra.cells.weights import ACTIVATIONS, Init, Product, activation_named, input_weights
from recurra.errors import ConfigError
from recurra.named import choose

Start = Literal["random", "rotations", "identity"]


class OrthogonalElman(Cell[ElmanState, ElmanFixed]):
    """The Elman network with an orthogonal U: what it holds neither fades nor explodes.

        h' = φ(W x + U h + b)
        U  = P diag(s) Qᵀ,   P, Q orthogonal,   s = 1 + m (2σ(p) − 1) ∈ [1 − m, 1 + m]

    m is `margin` (Vorontsov et al. 2017); with m = 0, the default, U = P is orthogonal. φ is any of Elman's, or
    "modrelu": φ(a) = sign(a) ∘ relu(|a| + b), where b stands here and nowhere else (Arjovsky et al. 2016).
    unitary = true keeps P and Q unitary, written in real 2×2 blocks: h holds the real parts, then the imaginary
    parts, |a| is the modulus of such a pair and sign(a) = a / |a|.
    """

    State = ElmanState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        activation: str = "modrelu",
        margin: float = 0.0,
        unitary: bool = False,
        bias: bool = True,
        input_init: Init = "glorot",
        state_init: Start = "random",
    ) -> None:
        super().__init__(input_size, hidden_size)
        if not 0 <= margin < 1:
            raise ConfigError(
                "margin, the largest distance of singular values from 1, must be at least 0 and below 1, but is "
                f"{margin!r}."
            )
        if unitary and hidden_size % 2:
            raise ConfigError(f"a unitary U needs an even hidden_size, but it is {hidden_size}.")
        is_modrelu = activation == "modrelu"
        if not is_modrelu and ":" not in str(activation):
            choose((*ACTIVATIONS, "modrelu"), activation, "activation")
        self.activation = activation
        self.margin = margin
        self.unitary = unitary
        self.phi = None if is_modrelu else activation_named(activation)
        self.from_input = input_weights(input_size, hidden_size, gates=1, bias=bias and not is_modrelu, init=input_init)
        units = hidden_size // 2 if unitary else hidden_size
        self.threshold = nn.Parameter(torch.zeros(units)) if bias and is_modrelu else None
        self.left = Rotation(hidden_size, unitary, state_init)
        self.right = Rotation(hidden_size, unitary, "identity") if margin else None
        self.stretch = nn.Parameter(torch.zeros(units)) if margin else None

    def fixed(self, rows: int, like: Tensor) -> ElmanFixed:
        P = self.left()
        if self.right is None or self.stretch is None:
            return ElmanFixed(U=Product(P))
        Q = self.right()
        s = 1 + self.margin * (2 * self.stretch.sigmoid() - 1)
        return ElmanFixed(U=Product(P * self.paired(s) @ Q.T))

    def project(self, x: Tensor, fixed: ElmanFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: ElmanFixed) -> ElmanState:
        a = inputs + fixed.U(state.h)
        return ElmanState(h=self.modrelu(a) if self.phi is None else self.phi(a))

    def modrelu(self, a: Tensor) -> Tensor:
        """sign(a) ∘ relu(|a| + b)."""
        b = 0 if self.threshold is None else self.paired(self.threshold)
        if not self.unitary:
            return a.sign() * (a.abs() + b).relu()
        real, imaginary = a.chunk(2, dim=-1)
        square = real**2 + imaginary**2
        # Where a pair is 0 it stays 0 and has no gradient, as sign(0) has none; the root is taken of 1 there.
        modulus = self.paired(torch.where(square > 0, square, 1).sqrt())
        return torch.where(self.paired(square) > 0, a / modulus * (modulus + b).relu(), 0)

    def paired(self, v: Tensor) -> Tensor:
        """A value per unit from a value per complex unit."""
        return torch.cat([v, v], dim=-1) if self.unitary else v


class Rotation(nn.Module):
    """An orthogonal (or, in real 2×2 blocks, unitary) matrix that may be learned without bounds: base · exp(A − Aᵀ).

    >>> Q = Rotation(4, unitary=False, start="random")()
    >>> torch.allclose(Q @ Q.T, torch.eye(4), atol=1e-6)
    True
    """

    base: Tensor

    def __init__(self, size: int, unitary: bool, start: Start) -> None:
        super().__init__()
        self.unitary = unitary
        choose(("random", "rotations", "identity"), start, "state_init")
        units = size // 2 if unitary else size
        self.turn = nn.Parameter(torch.zeros((2, units, units) if unitary else (size, size)))
        self.register_buffer("base", _unitary(units, start) if unitary else _orthogonal(size, start))

    def forward(self) -> Tensor:
        if self.unitary:
            real, imaginary = self.turn
            generator = in_blocks(real - real.T, imaginary + imaginary.T)
        else:
            generator = self.turn - self.turn.T
        # One Newton step towards BᵀB = 1: a base drawn in float32 is orthogonal to float64 after `.double()`.
        one = torch.eye(len(self.base), dtype=self.base.dtype, device=self.base.device)
        base = self.base @ (1.5 * one - 0.5 * self.base.T @ self.base)
        return base @ torch.linalg.matrix_exp(generator)


def in_blocks(real: Tensor, imaginary: Tensor) -> Tensor:
    """A complex matrix as a real one of twice the size, acting on real parts followed by imaginary parts."""
    return torch.cat([torch.cat([real, -imaginary], 1), torch.cat([imaginary, real], 1)])


def _orthogonal(size: int, start: Start) -> Tensor:
    if start == "rotations":
        angles = torch.empty(size // 2).uniform_(-math.pi, math.pi)
        blocks = [in_blocks(angle.cos().view(1, 1), angle.sin().view(1, 1)) for angle in angles]
        return torch.block_diag(*blocks, torch.ones(size % 2, size % 2))
    return nn.init.orthogonal_(torch.empty(size, size)) if start == "random" else torch.eye(size)


def _unitary(units: int, start: Start) -> Tensor:
    if start == "random":
        q, r = torch.linalg.qr(torch.complex(torch.randn(units, units), torch.randn(units, units)))
        q = q * (r.diagonal() / r.diagonal().abs())  # without this the phases would not be uniform
        return in_blocks(q.real, q.imag)
    angles = torch.empty(units).uniform_(-math.pi, math.pi) if start == "rotations" else torch.zeros(units)
    return in_blocks(angles.cos().diag(), angles.sin().diag())
