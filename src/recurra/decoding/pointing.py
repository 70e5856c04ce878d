"""Pointing: an output whose answers are elements of the source, and nothing else."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention import Attention
from recurra.encoders.memory import Places
from recurra.errors import ConfigError
from recurra.named import built
from recurra.outputs.output import at_least_single
from recurra.settings import Part, about


class Pointed(NamedTuple):
    """What may be pointed at in B sources: the end, then their S places."""

    keys: Tensor  # (B, 1 + S, K)
    mask: Tensor  # (B, 1 + S): False where there is no element
    tokens: Tensor  # (B, 1 + S): by which id each is chosen


@final
class Pointing(nn.Module):
    """Pointer network (Vinyals, Fortunato and Jaitly 2015): p over the elements of the source and an end.

        e_0      = a learned vector, which is the end
        u_j      = score(d, e_j)                     "additive": vᵀ tanh(W₁ d + W₂ e_j)
        p(j)     = softmax_j(u)                      over the end and the elements of the source

    d are the decoder's features and e_1 … e_S the encoder's memory. An id is one of the V specials, of which only the
    end can be chosen, or V + n for the n-th element (from 0) of a source. N rows are B sources, or k rows of each, one
    after the other.

    >>> pointing = Pointing("additive", 3, 4, specials=4, end=2)
    >>> places = Places(torch.randn(1, 5, 4), torch.tensor([[True, True, True, False, False]]))
    >>> pointed = pointing.remember(places, torch.tensor([[4, 5, 6, 0, 0]]))
    >>> p = pointing.of_tokens(pointing.log_probabilities(torch.randn(2, 3), pointed), pointed, 3).exp()
    >>> p.shape, p.sum(1).round(decimals=4).tolist(), p[:, [0, 1, 3]].sum().item()
    (torch.Size([2, 7]), [1.0, 1.0], 0.0)
    """

    def __init__(self, score: Part, features: int, memory: int, *, specials: int, end: int) -> None:
        super().__init__()
        with about("model", "pointer"):
            self.score: Attention = built(Attention, score, features, memory)
            has_more = self.score.location is not None or self.score.look is not None or self.score.gate is not None
            if len(self.score.terms) or has_more or self.score.heads > 1:
                raise ConfigError(
                    "model.pointer uses the score of an attention alone: leave out its terms, location, look, gate and "
                    "heads."
                )
        self.specials, self.end_id = specials, end
        self.end = nn.Parameter(torch.empty(memory))
        nn.init.normal_(self.end, std=memory**-0.5)

    def remember(self, places: Places, elements: Tensor) -> Pointed:
        """What may be pointed at; `elements` (B, S) is the id of each place, one of the specials where it is none."""
        rows = len(places.mask)
        end = self.end.to(places.values.dtype).expand(rows, 1, -1)
        values = torch.cat([end, places.values.masked_fill(~places.mask.unsqueeze(2), 0.0)], dim=1)
        elements = functional.pad(elements, (0, places.mask.shape[1] - elements.shape[1]))  # empty places behind
        mask = functional.pad(places.mask & (elements >= self.specials), (1, 0), value=True)
        return Pointed(self.score.keys(values), mask, functional.pad(elements, (1, 0), value=self.end_id))

    def log_probabilities(self, features: Tensor, pointed: Pointed) -> Tensor:
        """(N, 1 + S): log p of the end and of each place, given features (N, F)."""
        sources = len(pointed.mask)
        queries = features.unflatten(0, (sources, -1)) if sources else features.unsqueeze(1)
        scores = at_least_single(self.score.score(queries, pointed.keys))
        return scores.masked_fill(~pointed.mask.unsqueeze(1), -torch.inf).log_softmax(2).flatten(0, 1)

    def of_tokens(self, log_p: Tensor, pointed: Pointed, extra: int) -> Tensor:
        """(N, V + extra): log p of every id, out of that of each place; -∞ for what cannot be chosen."""
        size = self.specials + extra
        # One column more than needed takes what is no element.
        tokens = pointed.tokens.masked_fill(~pointed.mask, size)
        each = len(log_p) // len(tokens) if len(tokens) else 1
        tokens = tokens if each == 1 else tokens.repeat_interleave(each, dim=0)
        return log_p.new_full((len(log_p), size + 1), -torch.inf).scatter(1, tokens, log_p)[:, :size]


def elements_of(x: Tensor, elements: Tensor, specials: int, extra: int) -> Tensor:
    """(B, extra, E): what the encoder has read, (B, S, E), at the place of each element, in the order of their ids.

    >>> elements_of(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([[5, 0, 4]]), 4, 3).flatten().tolist()
    [3.0, 1.0, 0.0]
    """
    # One row more than needed takes what is no element.
    numbers = torch.where(elements >= specials, elements - specials, extra)
    into = x.new_zeros(len(x), extra + 1, x.shape[2])
    return into.scatter(1, numbers.unsqueeze(2).expand(-1, -1, x.shape[2]), x)[:, :extra]


def chosen_elements(tokens: Tensor, elements: Tensor, specials: int) -> Tensor:
    """What was read of the elements (B, X, E) that have these ids: (N, E) for (N,), k rows of each source one after
    the other, or (B, T, E) for (B, T); anything for an id that is none.

    >>> elements = torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]])
    >>> chosen_elements(torch.tensor([5, 4, 4, 5]), elements, 4).flatten().tolist()
    [2.0, 1.0, 3.0, 4.0]
    """
    sources, count, size = elements.shape
    if not count:
        return elements.new_zeros(*tokens.shape, size)
    at = (tokens - specials).clamp(0, count - 1).reshape(sources, -1, 1)
    return elements.gather(1, at.expand(-1, -1, size)).view(*tokens.shape, size)
