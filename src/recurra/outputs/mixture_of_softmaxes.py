"""A mixture of softmaxes."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells.weights import check_size
from recurra.heads import UNLABELLED
from recurra.heads.head import readout
from recurra.outputs.output import Output, at_least_single, tied_readout


@final
class MixtureOfSoftmaxes(Output):
    """K softmaxes, weighted: log p is no longer bound to the rank H of one product (Yang et al. 2018).

        π         = softmax(W_π h + b_π)                            how much each counts
        h_k       = tanh(W_k h + b_k)                               k = 1 … K
        p(w | h)  = Σ_k π_k softmax(W_y h_k + b)[w]

    It is summed in logs. Tied: W_y is the embedding, and h_k has its size; else h_k has that of h. Time and memory are
    those of K softmaxes.

    >>> output = MixtureOfSoftmaxes(4, 6, components=3)
    >>> output.log_probabilities(torch.randn(2, 4)).exp().sum(1).round(decimals=4).tolist()
    [1.0, 1.0]
    """

    def __init__(self, input_size: int, size: int, embedding: Tensor | None = None, *, components: int = 10) -> None:
        super().__init__(input_size, size, embedding)
        self.components = check_size(components, "components")
        latent_size = input_size if embedding is None else embedding.shape[1]
        self.prior = readout(input_size, components)
        self.latent = readout(input_size, components * latent_size)
        self.readout = tied_readout(latent_size, size, embedding)

    @property
    def scores_each(self) -> int:
        return self.components * self.size

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        targets = self.checked_targets(self.checked(features), targets)
        log_prior, o = self._scores(features)
        each = targets.unsqueeze(1).expand(-1, self.components)
        costs = functional.cross_entropy(o.flatten(0, 1), each.flatten(), ignore_index=UNLABELLED, reduction="none")
        costs = -torch.logsumexp(log_prior - costs.view_as(log_prior), dim=1)
        return costs.masked_fill(targets == UNLABELLED, 0)

    def log_probabilities(self, features: Tensor) -> Tensor:
        log_prior, o = self._scores(self.checked(features))
        return torch.logsumexp(log_prior.unsqueeze(2) + functional.log_softmax(o, dim=2), dim=1)

    def _scores(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """log π, (N, K), and the scores o of each softmax, (N, K, V)."""
        log_prior = functional.log_softmax(at_least_single(self.prior(features)), dim=1)
        h = self.latent(features).tanh().unflatten(1, (self.components, -1))
        return log_prior, at_least_single(self.readout(h))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.components} components"
