"""What a forecaster reads at a step: its values, and what else is known then.

    u_t = [x_t ; p_t ; m_t ; f_{t+1} ; s ; E_1[c_1] ; … ; E_C[c_C]]          from which x_{t+1} is predicted

    x_t        values of step t                       f_{t+1}   known ahead: of the step that is predicted
    p_t, m_t   known up to now, and 1 where known     s, c      numbers and categories of the whole series

Steps ahead, p is not known: it stays what it was, p_{T+k} = p_T, and m_{T+k} = 0. So that the network has seen this, a
row in training is treated alike with chance ½ from a step τ on that is drawn from all of its steps:

    p_t ← p_τ,   m_t ← 0        for t > τ

A category that training did not have is number 0; its vector is learned too, since in training a row's category is
taken for an unknown one with chance 1/20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

HELD = 0.5
"""How often what is known up to now is held in training."""

UNKNOWN = 0.05
"""How often a category is taken for an unknown one in training."""

LARGEST = 16
"""The most numbers that a category becomes."""


class Beside(NamedTuple):
    """What is known of some rows beside their values; None where there is nothing of a kind."""

    future: Tensor | None = None  # (B, T', k)
    past: Tensor | None = None  # (B, T, p)
    static_numbers: Tensor | None = None  # (B, s)
    static_names: Tensor | None = None  # (B, c)
    unit: Tensor | None = None  # (B, d): of counts, how many a value of 1 stands for

    def chosen(self, rows: Tensor) -> Beside:
        """The same of some rows."""
        return Beside(*(None if each is None else each[rows] for each in self))


class Covariates(nn.Module):
    """(B, T, d) values to (B, T, d + size): each step with what is known beside it.

    >>> joined = Covariates(future=1, past=0, masks=0, static=0, categories=(3,))
    >>> beside = Beside(torch.arange(4.0).reshape(1, 4, 1), static_names=torch.tensor([[1]]))
    >>> x = joined(torch.zeros(1, 2, 1), beside)
    >>> x.shape, x[0, :, 1].tolist()
    (torch.Size([1, 2, 4]), [1.0, 2.0])
    """

    def __init__(self, *, future: int, past: int, masks: int, static: int, categories: Sequence[int]) -> None:
        super().__init__()
        self.future, self.masks = future, masks
        widths = [min(LARGEST, 1 + count // 2) for count in categories]
        self.embeddings = nn.ModuleList(
            nn.Embedding(count, width) for count, width in zip(categories, widths, strict=True)
        )
        self.size = future + past + static + sum(widths)

    def forward(self, values: Tensor, beside: Beside, *, start: int = 0) -> Tensor:
        """What is read at steps `start` and after, whose values these are."""
        steps = values.shape[1]
        parts = [values]
        if beside.past is not None:
            parts.append(beside.past[:, start : start + steps])
        if beside.future is not None:
            parts.append(beside.future[:, start + 1 : start + 1 + steps])
        if (still := self.still(beside)) is not None:
            parts.append(still.unsqueeze(1).expand(-1, steps, -1))
        return torch.cat([part.to(values.dtype) for part in parts], dim=2)

    def still(self, beside: Beside) -> Tensor | None:
        """(B, ·): what is the same for all steps."""
        parts = [] if beside.static_numbers is None else [beside.static_numbers]
        if beside.static_names is not None:
            numbers = beside.static_names
            if self.training:
                numbers = numbers.masked_fill(torch.rand(numbers.shape, device=numbers.device) < UNKNOWN, 0)
            parts += [embedding(numbers[:, column]) for column, embedding in enumerate(self.embeddings)]
        return torch.cat([part.to(parts[-1].dtype) for part in parts], dim=1) if parts else None

    def held(self, beside: Beside) -> Beside:
        """In training: from some step on, what is known up to now stays what it was, as it does ahead."""
        if beside.past is None:
            return beside
        rows, steps, width = beside.past.shape
        like = beside.past
        last = (torch.rand(rows, 1, device=like.device) * steps).long()
        is_held = torch.rand(rows, 1, device=like.device) < HELD
        number = torch.arange(steps, device=like.device)
        at = torch.where(is_held, torch.minimum(number, last), number)  # (B, T)
        past = like.gather(1, at.unsqueeze(2).expand(-1, -1, width))
        is_over = (number > at).unsqueeze(2)
        masks = past[:, :, width - self.masks :].masked_fill(is_over, 0)
        return beside._replace(past=torch.cat([past[:, :, : width - self.masks], masks], dim=2))

    def ahead(self, beside: Beside, rows: Tensor, at: Tensor, count: int) -> Beside:
        """What is known of `count` steps after step `at` of some rows, once they are fed back as the steps 0, 1, …."""
        future = past = None
        if beside.future is not None:
            later = at.unsqueeze(1) + 1 + torch.arange(count + 1, device=at.device)
            later = later.clamp(max=beside.future.shape[1] - 1)
            future = beside.future[rows.unsqueeze(1), later]
        if beside.past is not None:
            past = beside.past[rows, at].unsqueeze(1)
            past = torch.cat([past[:, :, : past.shape[2] - self.masks], torch.zeros_like(past[:, :, : self.masks])], 2)
            past = past.expand(-1, max(1, count), -1)
        numbers, names = (None if each is None else each[rows] for each in (beside.static_numbers, beside.static_names))
        return Beside(future, past, numbers, names, None if beside.unit is None else beside.unit[rows])
