"""The plain softmax over a vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells.weights import is_bare
from recurra.heads import UNLABELLED
from recurra.outputs.output import Output, at_least_single, tied_readout
from recurra.products.cross_entropy import Options, cost, cost_in_pieces, padded_size, with_padding


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

    def total(self, features: Tensor, targets: Tensor) -> Tensor:
        if not self.goes_in_pieces(features):
            return super().total(features, targets)
        targets = self.checked_targets(self.checked(features), targets)
        return self.cost(features, targets, Options(ignored=UNLABELLED))

    def cost(self, features: Tensor, targets: Tensor, options: Options) -> Tensor:
        """What targets (N,) cost given features (N, H), with label smoothing or a second pass; see `Options`."""
        if not self.goes_in_pieces(features):
            return cost(self.log_probabilities(features), targets, options)
        return cost_in_pieces(self.checked(features), self.readout.weight, self.readout.bias, targets, options)

    def goes_in_pieces(self, features: Tensor) -> bool:
        """Whether a cost is computed from a few rows at a time, its gradient with it: on a GPU, in training."""
        is_trained = torch.is_grad_enabled() and torch._C._functorch.peek_interpreter_stack() is None
        return features.device.type == "cuda" and is_trained and is_bare(self.readout)

    def log_probabilities(self, features: Tensor) -> Tensor:
        return functional.log_softmax(at_least_single(self.readout(self.checked(features))), dim=1)

    def scoring(self) -> Callable[[Tensor], Tensor]:
        """o (N, V) of features (N, H), many times: on a GPU, where products of other sizes are several times slower,
        each row is followed by padding up to a multiple of eight."""
        W, bias = self.readout.weight, self.readout.bias
        size = padded_size(len(W), W.device)
        if size == len(W) or not is_bare(self.readout):
            return self.readout
        wide = with_padding(W, bias, size, W.dtype)
        return lambda features: functional.linear(features, *wide)[:, : self.size]
