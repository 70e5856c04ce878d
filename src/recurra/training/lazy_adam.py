"""Adam for tables of which a step meets few rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from torch import Tensor

from recurra.engines.c_library import can_read
from recurra.training import c_adam


@final
class LazyAdam(torch.optim.Optimizer):
    """Adam that moves the rows named by a sparse gradient, with the moments of these rows alone.

    m_r ← β₁ m_r + (1 − β₁) g_r,   v_r ← β₂ v_r + (1 − β₂) g_r²,
    w_r ← w_r − η m̂_r / (√v̂_r + ε)        m̂ = m / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ), t: the steps so far

    A row that is not met stays as it is, moments and all, so a step costs what its batch costs and not what the table
    does. On the CPU it is computed in C where a compiler is found.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        if not (0 <= betas[0] < 1 and 0 <= betas[1] < 1):
            raise ValueError(f"betas must be between 0 and 1, but are {betas}")
        if not eps > 0:
            raise ValueError(f"eps must be above 0, but is {eps}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        assert closure is None, "no task evaluates its loss several times a step"
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, weight.grad.coalesce(), group)
        return None

    def _move(self, weight: Tensor, slope: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        state["step"] += 1
        (beta1, beta2), step = group["betas"], state["step"]
        rate, root = group["lr"] / (1 - beta1**step), math.sqrt(1 - beta2**step)
        rows, g = slope._indices()[0], slope._values()
        m, v = state["exp_avg"], state["exp_avg_sq"]
        if can_read(torch.float32, weight, g, m, v) and c_adam.compiled() is not None:
            rows = rows.contiguous()
            c_adam.adam(rows, g, weight, m, v, betas=(beta1, beta2), epsilon=group["eps"], rate=rate, root=root)
            return
        first = m[rows].lerp_(g, 1 - beta1)
        second = v[rows].lerp_(g * g, 1 - beta2)
        m[rows], v[rows] = first, second
        weight[rows] -= rate * first / (second.sqrt() / root + group["eps"])
