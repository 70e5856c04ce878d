"""Pointer: an output that may also copy a token of the source."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.weights import check_size
from recurra.errors import DataError
from recurra.heads.head import readout
from recurra.outputs.output import at_least_single

CERTAIN = 1e4
"""σ of it is 1, and log σ of its negative a number still."""


@final
class Pointer(nn.Module):
    """A token of the vocabulary, or one of the source at the place where attention looks (See et al. 2017).

        g    = σ(w · h + b)                                    how much the vocabulary counts
        p(y) = g p_vocabulary(y) + (1 - g) Σ_{j: x_j = y} α_j

    y is one of V tokens of the vocabulary or of X more that it lacks: V + x is the x-th such token of a source. N rows
    are B sources, or k rows of each, one after the other; `copied` (B, S) says what each place of a source is called
    in the target, whatever it says on padding, where weights are 0. Where all are 0 there is nothing to copy: g = 1.
    It is summed in logs.

    >>> pointer = Pointer(3)
    >>> log_p, weights = torch.randn(1, 4).log_softmax(1), torch.tensor([[0.7, 0.2, 0.1]])
    >>> copied, h = torch.tensor([[1, 4, 1]]), torch.randn(1, 3)
    >>> p = pointer.log_probabilities(log_p, weights, h, copied, 1).exp()
    >>> p.shape, p.sum(1).round(decimals=4).tolist()
    (torch.Size([1, 5]), [1.0])
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.gate = readout(check_size(features, "features"), 1)

    def log_probabilities(self, log_p: Tensor, weights: Tensor, features: Tensor, copied: Tensor, extra: int) -> Tensor:
        """(N, V + X): log p of every token, given that of the vocabulary (N, V), weights (N, S) and features (N, F)."""
        self._check(log_p, weights, features, copied)
        size = log_p.shape[1] + extra
        # A list is read without a record of it, so that exports may have this check.
        [most] = copied.max().unsqueeze(0).tolist() if copied.device.type == "cpu" and copied.numel() else [0]
        if most >= size:
            raise DataError(
                f"a token to copy has id {most}, but ids must be between 0 and {size - 1} "
                f"({log_p.shape[1]} tokens of the vocabulary and {extra} of the source)."
            )
        log_g, log_rest = self._gates(features, weights)
        are_same = copied.unsqueeze(1) == copied.unsqueeze(2)  # (B, S, S)
        mass = (_by_source(weights, copied) @ are_same.to(weights.dtype)).flatten(0, 1)  # (N, S): of the token at j
        tokens = _by_row(copied, log_p)
        is_known = tokens < log_p.shape[1]
        written = (log_p.gather(1, tokens * is_known) + log_g).masked_fill(~is_known, -torch.inf)
        both = torch.where(mass > 0, torch.logaddexp(written, log_rest + _safe_log(mass)), written)
        # One column more than needed takes what a token has at all but the first of its places.
        is_first = ~are_same.tril(-1).any(2)
        tokens = _by_row(copied.masked_fill(~is_first, size), log_p)
        beyond = log_p.new_full((len(log_p), extra + 1), -torch.inf)
        return torch.cat([log_p + log_g, beyond], dim=1).scatter_(1, tokens, both)[:, :size]

    def _gates(self, features: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """log g and log (1 - g), (N, 1) each."""
        score = at_least_single(self.gate(features))
        score = score.masked_fill((weights == 0).all(1, keepdim=True), CERTAIN)
        return functional.logsigmoid(score), functional.logsigmoid(-score)

    def _check(self, log_p: Tensor, weights: Tensor, features: Tensor, copied: Tensor) -> None:
        rows, (sources, places) = len(log_p), copied.shape
        fits = rows % sources == 0 if sources else rows == 0
        if not fits or weights.shape != (rows, places) or features.shape != (rows, self.gate.in_features):
            raise DataError(
                f"a pointer needs log p of shape (N, V), weights (N, S), features (N, {self.gate.in_features}) and "
                f"tokens to copy (B, S), with N a multiple of B, but got {tuple(log_p.shape)}, "
                f"{tuple(weights.shape)}, {tuple(features.shape)} and {tuple(copied.shape)}."
            )


def _safe_log(mass: Tensor) -> Tensor:
    return mass.clamp_min(torch.finfo(mass.dtype).tiny).log()


def _by_source(rows: Tensor, copied: Tensor) -> Tensor:
    """(B, k, ...) from (N, ...)."""
    return rows.unflatten(0, (len(copied), -1)) if len(copied) else rows.unsqueeze(1)


def _by_row(copied: Tensor, rows: Tensor) -> Tensor:
    """(N, S) from (B, S): each source for each of its rows."""
    each = len(rows) // len(copied) if len(copied) else 1
    return copied if each == 1 else copied.repeat_interleave(each, dim=0)
