"""Numbers instead of labels."""

from __future__ import annotations

from torch import Tensor, nn

from recurra.cells.weights import check_size
from recurra.errors import DataError
from recurra.heads.head import checked_features, readout
from recurra.padding import Padded


class Value(nn.Module):
    """A vector of real values per step.

        o_t   = W h_t + b
        loss  = Σ_t |o_t - y_t|²             where y_t is known; NaN is a number that is not

    It has no labels and gives no distribution, so it is not a Head and no file of its name is in the catalogue.

    >>> import torch
    >>> head = Value(4, 1)
    >>> features = Padded(torch.randn(2, 5, 4), torch.tensor([5, 3]))
    >>> head.best(features).shape, head.loss(features, torch.zeros(2, 5, 1)).shape
    (torch.Size([2, 5, 1]), torch.Size([2]))
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        self.size = check_size(size, "size")
        self.readout = readout(input_size, size)

    def loss(self, features: Padded, targets: Tensor) -> Tensor:
        """(B,): the squared error summed over the values of each row; targets are (B, T, size)."""
        o = self.best(features)
        if not isinstance(targets, Tensor) or targets.shape != o.shape:
            found = tuple(targets.shape) if isinstance(targets, Tensor) else repr(targets)
            raise DataError(f"targets must be a tensor of shape {tuple(o.shape)}, but found {found}.")
        unknown = ~features.mask.unsqueeze(2) | targets.isnan()
        return (o - targets).masked_fill(unknown, 0).square().sum((1, 2))

    def best(self, features: Padded) -> Tensor:
        """(B, T, size): the values, 0 on padding. Gradients flow."""
        o: Tensor = self.readout(checked_features(features, self.input_size).values)
        return o.masked_fill(~features.mask.unsqueeze(2), 0)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.size}"
