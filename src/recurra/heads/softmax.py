"""Each step's label on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells.weights import is_bare
from recurra.errors import ConfigError
from recurra.heads import UNLABELLED
from recurra.heads.c_best import best_labels
from recurra.heads.head import Head, checked_features, fitting_features, readout
from recurra.padding import Padded

AT_ONCE = 1 << 17
"""Scores of labels that are compared together on a CPU, about: they stay in its cache. All at once take 1.4 times as
long (10,000 steps of 861 labels)."""


def best_by_torch(steps: Tensor, readout: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """The best label (N,) of each step (N, D) and its log p, where C cannot find them."""
    many = len(readout(steps[:1]).flatten()) if len(steps) else 1
    parts = steps.split(max(64, AT_ONCE // many)) if steps.device.type == "cpu" else (steps,)
    found = [functional.log_softmax(readout(part), dim=1).max(1) for part in parts]
    log_p, labels = (torch.cat(each) for each in zip(*found, strict=True))
    return labels, log_p


class Softmax(Head):
    """Each step's label on its own.

        o_t         = W_y h_t + b
        p(y_t | h)  = softmax(o_t)[y_t]
        p(y | h)    = Π_t p(y_t | h)

    With label_smoothing ε the loss of a step is (1 - ε) (-log p(y_t)) + ε/L Σ_k (-log p(k)). Steps that are
    UNLABELLED cost nothing.

    >>> head = Softmax(2, ["DET", "NOUN"])
    >>> features = Padded.full(torch.randn(1, 3, 2))
    >>> labels, log_probability = head.best(features)
    >>> torch.allclose(head.loss(features, labels), -log_probability)
    True
    """

    def __init__(self, input_size: int, labels: Sequence[str], *, label_smoothing: float = 0.0) -> None:
        super().__init__(input_size, labels)
        if not 0 <= label_smoothing < 1:
            raise ConfigError(f"label_smoothing must be at least 0 and below 1, but is {label_smoothing!r}.")
        self.label_smoothing = label_smoothing
        self.readout = readout(input_size, len(self.labels))

    def loss(self, features: Padded, targets: Tensor) -> Tensor:
        features = checked_features(features, self.input_size)
        targets = self.checked_targets(features, targets)
        o = self.readout(features.values)
        costs = functional.cross_entropy(
            o.flatten(0, 1),
            targets.flatten(),
            ignore_index=UNLABELLED,
            reduction="none",
            label_smoothing=self.label_smoothing,
        )
        return costs.view_as(targets).sum(1)

    @torch.no_grad()
    def best(self, features: Padded) -> tuple[Tensor, Tensor]:
        values, mask = fitting_features(features, self.input_size).values, features.mask
        given = best_labels(values.flatten(0, 1), self.readout.weight, self.readout.bias) if self._is_bare() else None
        labels, log_p = best_by_torch(values.flatten(0, 1), self.readout) if given is None else given
        labels, log_p = labels.view(mask.shape), log_p.view(mask.shape)
        return labels.masked_fill(~mask, 0), log_p.masked_fill(~mask, 0).sum(1)

    def _is_bare(self) -> bool:
        """Whether the readout is nothing but W and b."""
        return is_bare(self.readout) and self.readout.bias is not None

    @torch.no_grad()
    def probabilities(self, features: Padded) -> Tensor:
        return self._log_probabilities(features).exp().masked_fill(~features.mask.unsqueeze(2), 0)

    def scored(self, features: Padded) -> Tensor:
        return self._log_probabilities(features)

    def _log_probabilities(self, features: Padded) -> Tensor:
        """(B, T, L), whatever it is on padding: to clear the features would copy all of them."""
        return functional.log_softmax(self.readout(fitting_features(features, self.input_size).values), dim=2)
