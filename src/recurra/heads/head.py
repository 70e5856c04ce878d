"""Head: from the features of each step to a loss and the best labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from recurra.cells.weights import check_size
from recurra.errors import ConfigError, DataError
from recurra.heads import UNLABELLED
from recurra.padding import Padded


class Head(nn.Module, ABC):
    """A distribution over the labellings y of a row, given its features h: -log p(y | h) and the best y.

    A head is created from the size of the feature vector and the labels; its keyword arguments are options of a
    config file. B rows, T steps, L labels; padding counts nothing, whatever it holds.

    >>> from recurra.named import find
    >>> head = find(Head, "crf")(4, ["O", "B-x", "I-x"])
    >>> features = Padded(torch.randn(2, 5, 4), torch.tensor([5, 3]))
    >>> head.loss(features, torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([2])
    >>> labels, log_probability = head.best(features)
    >>> labels.shape, labels[1, 3:].tolist(), log_probability.shape
    (torch.Size([2, 5]), [0, 0], torch.Size([2]))
    >>> head.probabilities(features).sum(2).round(decimals=4)[1].tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, input_size: int, labels: Sequence[str]) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
            raise ConfigError(f"the labels of a head must be a list of strings, but found {labels!r}.")
        if not labels:
            raise ConfigError("a head needs at least one label, but the list is empty.")
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if list(labels).count(label) > 1)
            raise ConfigError(f"the label {twice!r} occurs twice: the labels of a head must be different.")
        self.labels = tuple(labels)

    @abstractmethod
    def loss(self, features: Padded, targets: Tensor) -> Tensor:
        """(B,): -log p of each row's targets, (B, T) numbers of labels; what is UNLABELLED may be any label."""

    def loss_of_all(self, features: Padded, targets: Tensor) -> Tensor:
        """The loss where every step is known to have a label, so that nobody has to look."""
        return self.loss(features, targets)

    @abstractmethod
    def best(self, features: Padded) -> tuple[Tensor, Tensor]:
        """The most probable labelling of each row, (B, T) with 0 on padding, and its log p, (B,). No gradient."""

    @abstractmethod
    def probabilities(self, features: Padded) -> Tensor:
        """(B, T, L): how probable each label is at each step, 0 on padding. No gradient."""

    def scored(self, features: Padded) -> Tensor:
        """(B, T, L): how each label is rated at each step, whatever it is on padding: what an exported model computes.

        Without a `chain` it is log p, and the best label of each step is chosen by itself.
        """
        raise ConfigError(
            f"the head {type(self).__name__} does not say how it is exported: write its method `scored`, and `chain` "
            "where labels are not chosen each by itself."
        )

    def chain(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """The scores of neighbouring labels (L, L), of the first and of the last, (L,); None: there are none."""
        return None

    def checked_targets(self, features: Padded, targets: Tensor) -> Tensor:
        """The targets with UNLABELLED on padding, or a DataError that says what is wrong with them."""
        shape = tuple(features.values.shape[:2])
        if not isinstance(targets, Tensor) or targets.dtype != torch.long or tuple(targets.shape) != shape:
            found = f"{tuple(targets.shape)} of {targets.dtype}" if isinstance(targets, Tensor) else f"{targets!r}"
            raise DataError(f"targets must be a tensor of shape {shape} of torch.int64, but found {found}.")
        targets = targets.masked_fill(~features.mask, UNLABELLED)
        # Elsewhere than on the CPU, looking at the values would wait for the device.
        if targets.device.type == "cpu":
            wrong = (targets != UNLABELLED) & ((targets < 0) | (targets >= len(self.labels)))
            if wrong.any():
                row, step = wrong.nonzero()[0].tolist()
                raise DataError(
                    f"the target of row {row}, step {step} is {int(targets[row, step])}, but the head has the labels "
                    f"0 to {len(self.labels) - 1}; a step without a label is {UNLABELLED}."
                )
        return targets

    def extra_repr(self) -> str:
        return f"{self.input_size}, {len(self.labels)} labels"


def checked_features(features: Padded, input_size: int) -> Padded:
    """The features with zeros for padding, or a DataError that says what is wrong with them."""
    return fitting_features(features, input_size).zeroed()


def fitting_features(features: Padded, input_size: int) -> Padded:
    """The features as they are, whatever is in their padding, or a DataError that says what is wrong with them."""
    features = features.checked()
    if features.values.dim() != 3 or features.values.shape[2] != input_size:
        raise DataError(
            f"features must have shape (rows, steps, {input_size}), but have {tuple(features.values.shape)}."
        )
    return features


def as_it_lies(layer: nn.Module, x: Tensor) -> Tensor:
    """What a layer that reads each step by itself makes of x (B, T, n), in the order in which x lies in memory.

    Some kernels give (B, T, n) with the steps side by side; a product would first copy it, and its gradient again.

    >>> layer, x = nn.Linear(2, 2), torch.randn(5, 3, 2).transpose(0, 1)
    >>> found = as_it_lies(layer, x)
    >>> torch.allclose(found, layer(x)), found.transpose(0, 1).is_contiguous()
    (True, True)
    """
    if x.dim() != 3 or x.is_contiguous() or not x.transpose(0, 1).is_contiguous():
        found: Tensor = layer(x)
        return found
    turned: Tensor = layer(x.transpose(0, 1)).transpose(0, 1)
    return turned


def readout(input_size: int, size: int) -> nn.Linear:
    """o = W h + b, with W drawn as Glorot & Bengio (2010) advise and b = 0.

    >>> readout(3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    layer = nn.Linear(input_size, size)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
