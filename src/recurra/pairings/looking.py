"""Attention of one word after the other, each of which knows what those before it saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.attention import Attention
from recurra.config.writer_model import look_of
from recurra.errors import ConfigError
from recurra.named import built
from recurra.padding import Padded
from recurra.settings import Part, about


@final
class Looking(nn.Module):
    """What the words h_1 … h_N saw in Y, one after the other.

        M_t = tanh(W_y Y + (W_h h_t + W_r r_{t−1}) ⊗ 1)         r_0 = 0
        α_t = softmax(wᵀ M_t)
        r_t = Y α_tᵀ + tanh(W_t r_{t−1})

    The first two lines are `additive` attention with the query [h_t; r_{t−1}] and the size of Y, in place of which any
    other may stand.
    """

    def __init__(self, attention: Part, query_size: int, memory_size: int) -> None:
        super().__init__()
        with about("attention"):
            spec = sized(attention, memory_size)
            self.attention = built(Attention, spec, query_size + memory_size, memory_size)
            if self.attention.context_size != memory_size:
                raise ConfigError(
                    f"attention.values = {self.attention.context_size} must be the size of what is attended to, "
                    f"{memory_size}, because what is seen is added up from word to word: leave it out."
                )
        self.from_past = nn.Linear(memory_size, memory_size, bias=False)  # W_t

    def forward(self, queries: Padded, read: Padded) -> tuple[Tensor, Tensor]:
        """r_N, (B, D), and the weights (B, N, S) of each word, 0 for padded ones."""
        memory = self.attention.remember(read.values, read.mask)
        is_real = queries.mask.unsqueeze(2)  # (B, N, 1)
        r = read.values.new_zeros(len(read.lengths), read.values.shape[2])
        past, found = self.attention.start(memory), []
        for t, h in enumerate(queries.values.unbind(1)):
            seen, weights, past, _ = self.attention.step(torch.cat([h, r], -1), memory, past)
            # A padded word sees nothing: the last r is that of the last real word.
            r = torch.where(is_real[:, t], seen + self.from_past(r).tanh(), r)
            found.append(weights)
        if not found:
            return r, read.values.new_zeros(*read.values.shape[:1], 0, read.values.shape[1])
        return r, torch.stack(found, 1) * is_real


def sized(attention: Part, size: int) -> Part:
    """Additive attention of a size, where it says none; any other as it is."""
    if look_of(attention) == "hard":
        raise ConfigError(
            "an attention with look = 'hard' learns from the likelihood of a written target, which only a decoder has: "
            "leave the look out."
        )
    spec = {"name": attention} if isinstance(attention, str) else attention
    is_free = isinstance(spec, Mapping) and spec.get("name") == "additive" and "size" not in spec
    return {**spec, "size": size} if is_free else attention
