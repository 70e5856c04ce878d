"""What a loss adds for where an attention looked: to look everywhere, and to learn from draws."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.attention.looks.hard import Hard
from recurra.errors import ConfigError
from recurra.padding import beside
from recurra.wirings import Features

DECAY = 0.9
"""How much of the mean of rewards stays at each step."""


class Reward(NamedTuple):
    """What a loss adds for draws, and the mean of rewards after it."""

    total: Tensor
    baseline: Tensor  # (1,)


def doubly_stochastic(weights: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
    """Σ_i (1 - Σ_t α_ti)², summed over rows: each real place is looked at once in all (Xu et al. 2015).

    Weights (B, T, S), a mask (B, S) of real places, and the steps of each row (B,).
    """
    steps = torch.arange(weights.shape[1], device=weights.device) < beside(lengths, weights).unsqueeze(1)
    seen = weights.masked_fill(~steps.unsqueeze(2), 0.0).sum(1)
    return (1 - seen).square().masked_fill(~mask, 0.0).sum()


def reinforced(features: Features, look: Hard, log_p: Tensor, lengths: Tensor, baseline: Tensor | None) -> Reward:
    """-λ_r Σ (log p(y | s) - b) Σ_t log α_t,s_t - λ_e Σ_t H(α_t), summed over rows; b ← 0.9 b + 0.1 log p.

    log p (B,) of each row's target, the steps of each row (B,), and b, (1,): before the first batch, its own mean. With
    look.baseline = "token", b is a mean of log p per token, and a row is compared with b times its length.
    """
    if features.chance is None:
        raise ConfigError(
            "an attention with look = 'hard' learns from what it draws, but this wiring does not hand that on: return "
            "Features(values, weights, seen.chance), or use another look."
        )
    steps = beside(torch.arange(features.chance.shape[1]) < lengths.unsqueeze(1), features.chance)
    log_alpha, entropy = features.chance.masked_fill(~steps.unsqueeze(2), 0.0).sum(1).unbind(1)
    reward = log_p.detach().to(log_alpha.dtype)
    counts = beside(lengths, reward).to(reward.dtype) if look.baseline == "token" else torch.ones_like(reward)
    mean = (reward.sum() / counts.sum()).view(1)
    b = mean if baseline is None else baseline
    total = -(look.reward * ((reward - b * counts) * log_alpha).sum() + look.entropy * entropy.sum())
    return Reward(total, DECAY * b + (1 - DECAY) * mean)
