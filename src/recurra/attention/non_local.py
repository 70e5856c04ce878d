"""A map of features in which each position sees all others."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.attention import Attended, Attention
from recurra.attention.fused import attended
from recurra.cells.weights import check_size
from recurra.errors import DataError
from recurra.named import built
from recurra.settings import Part


@final
class NonLocal(nn.Module):
    """A non-local block over the positions of a map of 1, 2 or 3 dimensions (Wang et al. 2018).

        z_i = Σ_j softmax_j(score(θ(x_i), φ(x_j))) g(x_j)    over the real positions j
        y_i = W_z z_i + x_i                                  θ, φ, g: `inner` features each, half of the channels

    score is the product of the two, or that of any attention, which `similarity` names.

    W_z starts at 0, so that y = x at first: a trained network can be given such a block without harm.

    x is (B, C, T), (B, C, H, W) or (B, C, D, H, W), the mask (B, ...), True on real positions. The others are neither
    seen nor changed: they come out as they went in.

    >>> x = torch.randn(2, 6, 3, 4)
    >>> torch.equal(NonLocal(6)(x), x)
    True
    """

    def __init__(self, channels: int, *, inner: int | None = None, similarity: Part = "dot") -> None:
        super().__init__()
        self.channels = check_size(channels, "channels")
        self.inner = max(1, channels // 2) if inner is None else check_size(inner, "inner")
        self.theta = nn.Linear(channels, self.inner)
        self.phi = nn.Linear(channels, self.inner)
        self.g = nn.Linear(channels, self.inner)
        self.attention: Attention | None = None  # the product alone needs none, and has a kernel of its own
        if similarity not in ("dot", {"name": "dot"}):
            self.attention = built(Attention, similarity, self.inner, self.inner)
        self.to_output = nn.Linear(self.inner, channels)  # W_z
        nn.init.zeros_(self.to_output.weight)
        nn.init.zeros_(self.to_output.bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        self._check(x, mask)
        read = x.flatten(2).transpose(1, 2)  # (B, N, C)
        real = None if mask is None else mask.flatten(1)
        if real is not None:
            read = read.masked_fill(~real.unsqueeze(2), 0.0)  # what stands there may be NaN, and 0 · NaN is NaN
        q, k, v = (part(read) for part in (self.theta, self.phi, self.g))
        change = self.to_output(self._seen(q, k, v, real))
        if real is not None:
            change = change.masked_fill(~real.unsqueeze(2), 0.0)
        return x + change.transpose(1, 2).unflatten(2, x.shape[2:])

    def _seen(self, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None) -> Tensor:
        """(B, N, inner): z of each position."""
        if self.attention is None:
            q, k, v = (part.unsqueeze(1) for part in (q, k, v))  # one head
            return attended(q, k, v, None if real is None else real[:, None, None], scale=1.0).squeeze(1)
        mask = q.new_ones(q.shape[:2], dtype=torch.bool) if real is None else real
        of_keys = self.attention.remember(k, mask)
        values = self.attention.remember(v, mask).values  # split by heads, where there are several
        seen: Attended = self.attention(q, of_keys._replace(values=values))
        return seen.context

    def _check(self, x: Tensor, mask: Tensor | None) -> None:
        if x.dim() not in (3, 4, 5) or x.shape[1] != self.channels:
            raise DataError(
                f"this non-local block reads a map (B, {self.channels}, ...) of 1, 2 or 3 dimensions, but got "
                f"{tuple(x.shape)}."
            )
        if mask is not None and mask.shape != (len(x), *x.shape[2:]):
            raise DataError(
                f"the mask of a map {tuple(x.shape)} has shape {(len(x), *x.shape[2:])}, but got {tuple(mask.shape)}."
            )

    def extra_repr(self) -> str:
        return f"{self.channels}, inner={self.inner}"
