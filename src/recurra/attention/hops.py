"""Memories that are looked at in several hops, and empty ones put between them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


def hop(u: Tensor, keys: Tensor, values: Tensor, is_there: Tensor, is_linear: Tensor) -> tuple[Tensor, Tensor]:
    """o and p of one look: p_i = softmax_i(u · m_i), or u · m_i where the hops are linear; o = Σ_i p_i c_i.

    u (…, d), keys m and values c (…, N, d), is_there (…, N): which memories there are; is_linear: broadcasts to (…, 1).
    Where there is none at all, o is 0.

    >>> o, p = hop(torch.zeros(2), torch.eye(2), torch.eye(2), torch.tensor([True, True]), torch.tensor(False))
    >>> o.tolist(), p.tolist()
    ([0.5, 0.5], [0.5, 0.5])
    """
    scores = (keys @ u.unsqueeze(-1)).squeeze(-1)
    lowest = torch.finfo(scores.dtype).min
    shares = scores.masked_fill(~is_there, lowest).softmax(-1)
    p = torch.where(is_linear, scores, shares) * is_there
    return (p.unsqueeze(-2) @ values).squeeze(-2), p


class Places(NamedTuple):
    """Where sentences stand among empty memories."""

    sentence: Tensor  # (B, N'), the number of the sentence in each place; -1: an empty memory, or none
    present: Tensor  # (B,), places that are there: sentences and empty memories


def with_empty(sentences: Tensor, most: int, noise: float) -> Places:
    """Put empty memories between n sentences at random: 0 to ⌈noise · n⌉ of them, each choice equally likely.

    sentences (B,): n of each row, at most `most`; N' = most + ⌈noise · most⌉.

    >>> with_empty(torch.tensor([2, 0]), 2, 0.0).sentence.tolist()
    [[0, 1], [-1, -1]]
    """
    n = sentences.unsqueeze(-1)
    empty = ((sentences * noise).ceil() + 1) * torch.rand(sentences.shape, device=sentences.device)
    count = sentences + empty.floor().long().clamp(max=math.ceil(most * noise))
    places = torch.arange(most + math.ceil(most * noise), device=sentences.device)
    # The n of all places that are there with the smallest draws are those of the sentences.
    draws = torch.rand(*sentences.shape, len(places), device=sentences.device)
    draws = draws.masked_fill(places >= count.unsqueeze(-1), 2.0)
    is_sentence = draws.argsort(-1).argsort(-1) < n
    return Places(torch.where(is_sentence, is_sentence.cumsum(-1) - 1, -1), count)


def position_weights(
    widths: Tensor, longest: int, size: int, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The position encoding l_kj = (1 − j/J) − (k/d)(1 − 2j/J) as α_j + k β_j; widths J (…,) to α and β (…, longest).

    0 after the last word.

    >>> alpha, beta = position_weights(torch.tensor([2]), 3, 4)
    >>> alpha.tolist(), beta.tolist()                       # j/J is 1/2, then 1
    ([[0.5, 0.0, 0.0]], [[0.0, 0.25, 0.0]])
    """
    j = torch.arange(1, longest + 1, device=widths.device, dtype=dtype)
    is_word = j <= widths.unsqueeze(-1)
    share = j / widths.clamp(min=1).unsqueeze(-1)
    return (1 - share).where(is_word, 0), ((2 * share - 1) / size).where(is_word, 0)
