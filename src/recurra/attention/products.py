"""The two products of attention, queries with keys and weights with values, and fast gradients of them on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import Function, FunctionCtx

LARGE = 1 << 16
"""So many numbers in a memory make up for the time that a step through Python takes."""


def compared(queries: Tensor, keys: Tensor) -> Tensor:
    """q · k for each query (..., Q, K) and key (..., S, K) of a row: (..., Q, S)."""
    if queries.dim() == 4:
        return compared(queries.flatten(0, 1), keys.flatten(0, 1)).unflatten(0, queries.shape[:2])
    if _pays(keys):
        return _Compared.apply(queries, keys)  # type: ignore[no-untyped-call]
    return torch.bmm(queries, keys.transpose(1, 2))


def averaged(weights: Tensor, values: Tensor) -> Tensor:
    """Σ_j α_j v_j for weights (..., Q, S) and values (..., S, D) of a row: (..., Q, D)."""
    if weights.dim() == 4:
        return averaged(weights.flatten(0, 1), values.flatten(0, 1)).unflatten(0, weights.shape[:2])
    if _pays(values):
        return _Averaged.apply(weights, values)  # type: ignore[no-untyped-call]
    return torch.bmm(weights, values)


def _pays(memory: Tensor) -> bool:
    is_plain = torch.is_grad_enabled() and not torch.is_autocast_enabled(memory.device.type)
    return is_plain and memory.device.type == "cpu" and memory.numel() >= LARGE


class _Compared(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, queries: Tensor, keys: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys)
        return torch.bmm(queries, keys.transpose(1, 2))

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        queries, keys = ctx.saved_tensors  # type: ignore[attr-defined]
        return torch.bmm(gradient, keys), _outer(gradient, queries)


class _Averaged(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, weights: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(weights, values)
        return torch.bmm(weights, values)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        weights, values = ctx.saved_tensors  # type: ignore[attr-defined]
        return torch.bmm(gradient, values.transpose(1, 2)), _outer(weights, gradient)


def _outer(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ right, (B, S, D) from (B, Q, S) and (B, Q, D)."""
    # torch's own gradient of the keys is rightᵀ left, transposed: 9 times slower with one query, 2 times with fifteen.
    return left.transpose(1, 2) * right if left.shape[1] == 1 else torch.bmm(left.transpose(1, 2), right)
