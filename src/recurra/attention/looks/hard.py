"""Looking at one place."""

from __future__ import annotations

from typing import Literal, final

import torch
from torch import Tensor

from recurra.attention.looks.look import Look, Looked
from recurra.attention.masking import masked_softmax
from recurra.errors import ConfigError
from recurra.named import choose


@final
class Hard(Look):
    """One place, drawn in training, the most probable in evaluation (Xu et al. 2015).

        α_t = softmax(e_t)
        s_t ~ α_t                                            in evaluation s_t = argmax α_t, of equals the first
        context_t = v_{s_t}                                  in training, with the chance `soft`: Σ_j α_tj v_j

    No gradient goes through a draw. Instead, with log p(y | s) of a target and a mean b of those before it, the loss is

        -log p(y | s) - λ_r (log p(y | s) - b) Σ_t log α_t,s_t - λ_e Σ_t H(α_t)      b ← 0.9 b + 0.1 log p(y | s)

    where only what follows λ_r and λ_e has a gradient of its own there: REINFORCE (Williams 1992). λ_r is `reward`,
    λ_e `entropy`. A coin for `soft` is thrown for each row and step, and steps that take the mean have no λ_r term.
    Several heads draw one place each. With baseline = "token", b is a mean per token, times the length of a target:
    otherwise any draw for a target that is shorter than the mean is rewarded.
    """

    def __init__(
        self,
        query_size: int,
        *,
        reward: float = 1.0,
        entropy: float = 0.002,
        soft: float = 0.5,
        baseline: Literal["sequence", "token"] = "sequence",
    ) -> None:
        super().__init__(query_size)
        self.baseline = choose(("sequence", "token"), baseline, "baseline")
        for name, value in (("reward", reward), ("entropy", entropy)):
            if value < 0:
                raise ConfigError(f"{name} of a hard look must be at least 0, but is {value}.")
        if not 0 <= soft < 1:
            raise ConfigError(f"soft of a hard look must be at least 0 and below 1, but is {soft}.")
        self.reward, self.entropy, self.soft = reward, entropy, soft

    def forward(self, scores: Tensor, queries: Tensor, mask: Tensor, steps: Tensor | None, grid: bool) -> Looked:
        over = mask[:, None, None] if scores.dim() == 4 else mask.unsqueeze(1)
        alpha = masked_softmax(scores, over)
        if not mask.shape[1]:
            return Looked(alpha, scores.new_zeros(*queries.shape[:2], 2) if self.training else None)
        if not self.training:
            return Looked(one_of(alpha.argmax(-1), alpha, over))
        # As torch.multinomial draws, which would wait for the device: the largest of α / e, e ~ exponential.
        s = one_of((alpha.detach() / torch.empty_like(alpha).exponential_()).argmax(-1), alpha, over)
        is_soft = torch.rand_like(alpha[..., :1]) < self.soft
        log_alpha = alpha.clamp_min(torch.finfo(alpha.dtype).tiny).log()
        log_p = (s * log_alpha).sum(-1).masked_fill(is_soft.squeeze(-1), 0.0)
        entropy = -(alpha * log_alpha).sum(-1)
        chance = torch.stack([log_p, entropy], dim=-1)  # (B, [heads,] Q, 2)
        return Looked(torch.where(is_soft, alpha, s), chance.sum(1) if chance.dim() == 4 else chance)

    def extra_repr(self) -> str:
        return f"reward {self.reward}, entropy {self.entropy}, soft {self.soft}"


def one_of(places: Tensor, like: Tensor, mask: Tensor) -> Tensor:
    """Weights of 1 at these places (...,) and of 0 at all others, (..., S); of rows without a place, 0 everywhere."""
    found = torch.zeros_like(like).scatter_(-1, places.unsqueeze(-1), 1.0)
    return found.masked_fill(~mask, 0.0)
