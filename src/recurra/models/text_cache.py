"""A cache of the words that a passage has had so far, asked for those that followed where the text was alike."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class TextCache(NamedTuple):
    """The continuous cache (Grave, Joulin and Usunier 2017): nothing in it is learned.

        p_cache(w | w_1 … w_t) ∝ Σ_{i < t} 1{w_{i+1} = w} e^{θ h_t · h_i}
        p(w | …)               = (1 − λ) p_network(w | …)  +  λ p_cache(w | …)

    h_t is the network's last layer after w_t. Unknown words are not kept: nobody can write them again. Where nothing is
    kept yet, the network alone answers.
    """

    share: float  # λ
    sharpness: float  # θ
    unknown: int

    def added(self, logs: Tensor, h: Tensor, targets: Tensor, rows: Tensor, steps: Tensor) -> Tensor:
        """log p (N, V) with the cache, of those of the network: each of N places is a row and a step of h (B, T, H).

        targets (B, T) are the tokens that follow; of a place, those at earlier steps are kept.
        """
        scores = self.sharpness * (h[rows] @ h[rows, steps].unsqueeze(2)).squeeze(2)  # (N, T)
        follows = targets[rows].clamp_min(0)
        kept = (torch.arange(h.shape[1], device=h.device) < steps.unsqueeze(1)) & (follows != self.unknown)
        is_any = kept.any(1, keepdim=True)
        weights = scores.masked_fill(~kept & is_any, -math.inf).softmax(1).to(logs)
        cached = torch.zeros_like(logs).scatter_add(1, follows, weights)
        mixed = torch.logaddexp(logs + math.log1p(-self.share), cached.log() + math.log(self.share))
        return torch.where(is_any, mixed, logs)
