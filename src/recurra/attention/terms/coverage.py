"""Minding how much of the source was looked at."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.terms.term import Term
from recurra.errors import ConfigError


@final
class Coverage(Term):
    """A price on looking again at what was looked at (Tu et al. 2016; See et al. 2017).

        c_0 = 0,  c_t = c_{t-1} + α_t                        how much each place was looked at
        term_tj = -a c_{t-1,j}                               a = `strength` at first, learned, of either sign

    At first a is 0: whether to turn away from such places (a > 0) or back to them (a < 0) is for training to find.
    """

    def __init__(self, *, strength: float = 0.0) -> None:
        super().__init__()
        if not math.isfinite(strength):
            raise ConfigError(
                f"the option `strength` of the attention term 'coverage' must be a finite number, but is {strength}."
            )
        self.bonus = nn.Parameter(torch.tensor(-float(strength)))  # -a

    def start(self, mask: Tensor, rows: int | None = None) -> Tensor:
        return self.bonus.new_zeros(len(mask) if rows is None else rows, mask.shape[1])

    def score(self, past: Tensor, mask: Tensor, columns: int | None) -> Tensor:
        return self.bonus * past

    def moved(self, past: Tensor, weights: Tensor, columns: int | None) -> Tensor:
        return past + weights
