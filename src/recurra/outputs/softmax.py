"""The plain softmax over a vocabulary."""

from __future__ import annotations

from typing import final

from torch import Tensor
from torch.nn import functional

from recurra.heads import UNLABELLED
from recurra.outputs.output import Output, at_least_single, tied_readout


@final
class Softmax(Output):
    """Every token has a score.

        o         = W_y h + b
        p(w | h)  = exp(o_w) / Σ_v exp(o_v)

    Tied: W_y is the embedding (Press & Wolf 2017; Inan et al. 2017), whose size is then that of h.

    >>> import torch
    >>> embedding = torch.nn.Embedding(6, 4)
    >>> Softmax(4, 6, embedding.weight).loss(torch.zeros(1, 4), torch.tensor([2])).exp().round(decimals=4).item()
    6.0
    """

    def __init__(self, input_size: int, size: int, embedding: Tensor | None = None) -> None:
        super().__init__(input_size, size, embedding)
        self.readout = tied_readout(input_size, size, embedding)

    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        targets = self.checked_targets(self.checked(features), targets)
        o = at_least_single(self.readout(features))
        return functional.cross_entropy(o, targets, ignore_index=UNLABELLED, reduction="none")

    def log_probabilities(self, features: Tensor) -> Tensor:
        return functional.log_softmax(at_least_single(self.readout(self.checked(features))), dim=1)
