"""Memories that are looked at in several hops, and empty ones put between them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


def hop(
    u: Tensor, keys: Tensor, values: Tensor, is_there: Tensor, is_linear: Tensor, vacant: Tensor | int = 0
) -> tuple[Tensor, Tensor]:
    """o and p of one look: p_i = softmax_i(u · m_i), or u · m_i where the hops are linear; o = Σ_i p_i c_i.

    u (…, d), keys m and values c (…, N, d), is_there (…, N): which memories there are; is_linear: broadcasts to (…, 1).
    The softmax is over `vacant` places more, (…, 1), with m = c = 0: a hop may look at nothing. Where there is no
    memory at all, o is 0.

    >>> u, memories, is_there = torch.zeros(2), torch.eye(2), torch.tensor([True, True])
    >>> o, p = hop(u, memories, memories, is_there, torch.tensor(False))
    >>> o.tolist(), p.tolist()
    ([0.5, 0.5], [0.5, 0.5])
    >>> hop(u, memories, memories, is_there, torch.tensor(False), vacant=2)[1].tolist()
    [0.25, 0.25]
    """
    if not keys.shape[-2]:  # of which there is no largest score either
        return torch.zeros_like(u), u.new_zeros(*u.shape[:-1], 0)
    scores = (keys @ u.unsqueeze(-1)).squeeze(-1)
    masked = scores.masked_fill(~is_there, torch.finfo(scores.dtype).min)
    if isinstance(vacant, int) and vacant == 0:
        shares = masked.softmax(-1)
    else:
        highest = masked.detach().amax(-1, keepdim=True).clamp(min=0)  # or the score 0 of a vacant place
        powers = (masked - highest).exp()
        shares = powers / (powers.sum(-1, keepdim=True) + vacant * (-highest).exp())
    p = torch.where(is_linear, scores, shares) * is_there
    return (p.unsqueeze(-2) @ values).squeeze(-2), p


class Places(NamedTuple):
    """Where sentences stand among empty memories."""

    sentence: Tensor  # (B, N'), the number of the sentence in each place; -1: an empty memory, or none
    present: Tensor  # (B,), places that are there: sentences and empty memories


def with_empty(sentences: Tensor, most: int, noise: float, places: Tensor | int | None = None) -> Places:
    """Put empty memories between n sentences at random: 0 to ⌈noise · n⌉ of them, each choice equally likely.

    sentences (B,): n of each row, at most `most`; N' = most + ⌈noise · most⌉. Where there are so many `places` in all,
    no more empty ones than they leave free.

    >>> with_empty(torch.tensor([2, 0]), 2, 0.0).sentence.tolist()
    [[0, 1], [-1, -1]]
    """
    n = sentences.unsqueeze(-1)
    at_most = (sentences * noise).ceil().clamp(max=math.ceil(most * noise))
    if places is not None:
        at_most = torch.minimum(at_most, (places - sentences).clamp(min=0).to(at_most.dtype))
    count = sentences + ((at_most + 1) * torch.rand(sentences.shape, device=sentences.device)).floor().long()
    place = torch.arange(most + math.ceil(most * noise), device=sentences.device)
    # The n of all places that are there with the smallest draws are those of the sentences.
    draws = torch.rand(*sentences.shape, len(place), device=sentences.device)
    draws = draws.masked_fill(place >= count.unsqueeze(-1), 2.0)
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


def place_weights(
    widths: Tensor, longest: int, size: int, words: int, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """l_kj = 1 + (4 / dJ)(k − (d+1)/2)(j − (J+1)/2) as α_j + k β_j, with the same J = `words` for every sentence.

    widths (…,) to α and β (…, longest), 0 after the last word. Words after the J-th one weigh as much as that one.

    >>> alpha, beta = place_weights(torch.tensor([2]), 3, 1, 2)
    >>> (alpha + beta).tolist()                             # d = 1: no unit is before or after another
    [[1.0, 1.0, 0.0]]
    """
    j = torch.arange(1, longest + 1, device=widths.device, dtype=dtype)
    is_word = j <= widths.unsqueeze(-1)
    beta = (4 / (size * words) * (j.clamp(max=words) - (words + 1) / 2)).expand(is_word.shape)
    return (1 - (size + 1) / 2 * beta).where(is_word, 0), beta.where(is_word, 0)
