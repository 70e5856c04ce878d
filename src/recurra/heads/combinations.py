"""Several columns of tags chosen as one: of their combinations, only those that training has."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.heads import UNLABELLED
from recurra.heads.c_best import best_labels
from recurra.heads.head import fitting_features
from recurra.heads.softmax import best_by_torch
from recurra.padding import Padded

NEVER = -1e30
"""The score of a combination that does not agree with what is known: in float32 still a number."""


class Combinations(nn.Module):
    """Tags of several columns, chosen together at each step.

        o_c        = W_c h_t + b_c                             the readout of column c
        s_k        = Σ_c o_c[k_c]                              k: a combination that occurs in training
        p(k | h_t) = softmax(s)[k]

    The loss of a step is -log of the probability of all combinations that agree with the tags which are known; a step
    that no combination agrees with costs nothing. It has no weights of its own: the readouts are given to each call.

    >>> two = Combinations([(0, 0), (0, 1), (1, 2)])
    >>> readouts = [nn.Linear(4, 2), nn.Linear(4, 3)]
    >>> labels, log_probability = two.best(readouts, Padded.full(torch.randn(1, 5, 4)))
    >>> all(pair in [(0, 0), (0, 1), (1, 2)] for pair in zip(*(each[0].tolist() for each in labels)))
    True
    """

    known: Tensor

    def __init__(self, known: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.register_buffer("known", torch.tensor(known, dtype=torch.long), persistent=False)  # (K, columns)

    def weights(self, readouts: Sequence[nn.Linear]) -> tuple[Tensor, Tensor]:
        """W (K, H) and b (K,) of the combinations: s = W h + b."""
        pairs = list(zip(self.known.unbind(1), readouts, strict=True))
        W = [functional.embedding(numbers, each.weight) for numbers, each in pairs]
        b = [functional.embedding(numbers, each.bias.unsqueeze(1)) for numbers, each in pairs]
        return torch.stack(W).sum(0), torch.stack(b).sum(0).squeeze(1)

    def loss(self, readouts: Sequence[nn.Linear], features: Padded, targets: Sequence[Tensor]) -> Tensor:
        """(B,): the loss of each row; targets are those of each column, (B, T)."""
        s = functional.linear(features.values, *self.weights(readouts)).float()
        agrees = features.mask.unsqueeze(2).expand_as(s)
        for numbers, tags in zip(self.known.unbind(1), targets, strict=True):
            wanted = tags.unsqueeze(2)
            agrees = agrees & ((wanted == numbers) | (wanted == UNLABELLED))
        own = torch.logsumexp(s.masked_fill(~agrees, NEVER), 2)
        costs = torch.logsumexp(s, 2) - own
        return torch.where(agrees.any(2), costs, costs.new_zeros(())).sum(1)

    @torch.no_grad()
    def best(self, readouts: Sequence[nn.Linear], features: Padded) -> tuple[list[Tensor], Tensor]:
        """The best tags of each column, (B, T) with 0 on padding, and the log p of all of a row, (B,)."""
        values, mask = fitting_features(features, readouts[0].in_features).values, features.mask
        W, b = self.weights(readouts)
        steps = values.flatten(0, 1)
        given = best_labels(steps, W, b)
        chosen, log_p = best_by_torch(steps, lambda part: functional.linear(part, W, b)) if given is None else given
        labels = [numbers[chosen].view(mask.shape).masked_fill(~mask, 0) for numbers in self.known.unbind(1)]
        return labels, log_p.view(mask.shape).masked_fill(~mask, 0).sum(1)

    @torch.no_grad()
    def probabilities(self, readouts: Sequence[nn.Linear], features: Padded) -> list[Tensor]:
        """(B, T, L) of each column: Σ p(k) over the combinations k with each tag; 0 on padding."""
        p = functional.linear(features.values, *self.weights(readouts)).softmax(2)
        p = p.masked_fill(~features.mask.unsqueeze(2), 0)
        return [
            p.new_zeros(*p.shape[:2], each.out_features).index_add_(2, numbers, p)
            for numbers, each in zip(self.known.unbind(1), readouts, strict=True)
        ]

    def extra_repr(self) -> str:
        return f"{len(self.known)} combinations of {self.known.shape[1]} columns"
