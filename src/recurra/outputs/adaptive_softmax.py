"""A softmax in two steps for large vocabularies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.errors import ConfigError
from recurra.heads import UNLABELLED
from recurra.heads.head import readout
from recurra.outputs.output import Output, at_least_single


@final
class AdaptiveSoftmax(Output):
    """Frequent tokens at once, rare ones by way of their cluster (Grave et al. 2017).

        q         = softmax(W_0 h + b_0 + s)                       the tokens before c_1, then a place per cluster
        p(w | h)  = q[w]                                           w < c_1
        p(w | h)  = q[c_1 + i - 1] softmax(B_i A_i h + b_i)[w - c_i]     c_i ≤ w < c_{i+1}

    c are the cutoffs: token ids, which go from frequent to rare as a Vocabulary orders them; c_{n+1} = V. s is log of
    how many tokens a cluster has, and 0 for a token, so that all tokens are equally probable where all weights are 0.
    The features of cluster i are shrunk to H / div_value^i by A_i. Only the clusters that the targets lie in are
    computed, so training takes a fraction of a softmax's time where V is large.

    cutoffs         by default V/15 and 3V/15
    div_value       how much narrower each cluster is than the one before it

    >>> output = AdaptiveSoftmax(8, 100, cutoffs=[10, 40], div_value=2.0)
    >>> output.log_probabilities(torch.randn(2, 8)).exp().sum(1).round(decimals=4).tolist()
    [1.0, 1.0]
    """

    log_sizes: Tensor

    def __init__(
        self,
        input_size: int,
        size: int,
        embedding: Tensor | None = None,
        *,
        cutoffs: Sequence[int] | None = None,
        div_value: float = 4.0,
    ) -> None:
        super().__init__(input_size, size, embedding)
        if embedding is not None:
            raise ConfigError(
                "an adaptive softmax cannot be tied to the embedding: its clusters are narrower than the embedding's "
                "rows. Do not tie the weights, or use 'softmax'."
            )
        self.edges = edges_of(size, cutoffs)
        if any(one >= next_one for one, next_one in pairwise([0, *self.edges])):
            raise ConfigError(
                f"cutoffs must be increasing ids between 1 and {size - 1} (the vocabulary has {size} tokens), but "
                f"are {list(self.edges[:-1])}."
            )
        if not 1 <= div_value < math.inf:
            raise ConfigError(f"div_value must be a number of at least 1, but is {div_value!r}.")
        widths = [last - first for first, last in pairwise(self.edges)]
        self.readout = readout(input_size, self.edges[0] + len(widths))
        inner = [max(1, int(input_size / div_value**i)) for i in range(1, len(widths) + 1)]
        self.shrinks = nn.ModuleList(nn.Linear(input_size, narrow, bias=False) for narrow in inner)
        self.tails = nn.ModuleList(readout(narrow, width) for narrow, width in zip(inner, widths, strict=True))
        for shrink in self.shrinks:
            nn.init.xavier_uniform_(shrink.weight)  # type: ignore[arg-type]
        log_sizes = [*([0.0] * self.edges[0]), *(math.log(width) for width in widths)]
        self.register_buffer("log_sizes", torch.tensor(log_sizes, dtype=torch.float64), persistent=False)

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        targets = self.checked_targets(self.checked(features), targets)
        first_targets = targets
        members = []
        for i, (first, last) in enumerate(pairwise(self.edges)):
            is_here = (targets >= first) & (targets < last)
            first_targets = first_targets.masked_fill(is_here, self.edges[0] + i)
            members.append(is_here.nonzero().squeeze(1))
        o = self._first(features)
        costs = functional.cross_entropy(o, first_targets, ignore_index=UNLABELLED, reduction="none")
        for i, rows in enumerate(members):
            within = functional.cross_entropy(
                self._tail(i, features[rows]), targets[rows] - self.edges[i], reduction="none"
            )
            costs = costs.index_add(0, rows, within)
        return costs

    def log_probabilities(self, features: Tensor) -> Tensor:
        first = functional.log_softmax(self._first(self.checked(features)), dim=1)
        shortlist = self.edges[0]
        tails = [
            first[:, shortlist + i, None] + functional.log_softmax(self._tail(i, features), dim=1)
            for i in range(len(self.tails))
        ]
        return torch.cat([first[:, :shortlist], *tails], dim=1)

    def _first(self, features: Tensor) -> Tensor:
        o = at_least_single(self.readout(features))
        return o + self.log_sizes.to(o.dtype)

    def _tail(self, i: int, features: Tensor) -> Tensor:
        return at_least_single(self.tails[i](self.shrinks[i](features)))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, cutoffs {list(self.edges[:-1])}"


def edges_of(size: int, cutoffs: Sequence[int] | None) -> tuple[int, ...]:
    """c_1 … c_{n+1}: where each cluster of a vocabulary begins, and the last one ends.

    >>> edges_of(100, [10, 40]), edges_of(150, None)
    ((10, 40, 100), (10, 30, 150))
    """
    if cutoffs is None:
        cutoffs = [cutoff for cutoff in (size // 15, 3 * (size // 15)) if cutoff]
    return (*cutoffs, size)
