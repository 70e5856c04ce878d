"""Output: a distribution over a vocabulary, given features."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from recurra.cells.weights import check_size
from recurra.errors import ConfigError, DataError
from recurra.heads import UNLABELLED
from recurra.heads.head import readout


class Output(nn.Module, ABC):
    """p(w | h) over the V tokens of a vocabulary, for N feature vectors h of size H.

    An output is created from H, V and, to tie its weights, the embedding (V, E): then W_y is that parameter itself.
    It is saved once and tied again on load. Keyword arguments are options of a config file.

    >>> from recurra.named import find
    >>> output = find(Output, "softmax")(4, 10)
    >>> h, w = torch.randn(3, 4), torch.tensor([0, 9, 2])
    >>> output.log_probabilities(h).exp().sum(1).round(decimals=4).tolist()
    [1.0, 1.0, 1.0]
    >>> torch.allclose(output.loss(h, w), -output.log_probabilities(h)[torch.arange(3), w])
    True
    """

    def __init__(self, input_size: int, size: int, embedding: Tensor | None = None) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        self.size = check_size(size, "size")
        if embedding is not None and (embedding.dim() != 2 or embedding.shape[0] != size):
            raise ConfigError(
                f"an output over {size} tokens can be tied only to an embedding of shape ({size}, …), but this one "
                f"has shape {tuple(embedding.shape)}."
            )

    @abstractmethod
    def loss(self, features: Tensor, targets: Tensor) -> Tensor:
        """(N,): -log p of each target, (N,) ids, given features (N, H); one that is UNLABELLED costs nothing."""

    def total(self, features: Tensor, targets: Tensor) -> Tensor:
        """The sum of `loss` over all targets, for training: an output may have a way to it that needs less memory."""
        return self.loss(features, targets).sum()

    @abstractmethod
    def log_probabilities(self, features: Tensor) -> Tensor:
        """(N, V): log p of every token given features (N, H)."""

    @property
    def scores_each(self) -> int:
        """How many scores are in memory for each feature vector."""
        return self.size

    def checked(self, features: Tensor) -> Tensor:
        """The features, or a DataError that says what is wrong with them."""
        if not isinstance(features, Tensor) or features.dim() != 2 or features.shape[1] != self.input_size:
            found = tuple(features.shape) if isinstance(features, Tensor) else f"a {type(features).__name__}"
            raise DataError(f"features must be a tensor of shape (N, {self.input_size}), but found {found}.")
        return features

    def checked_targets(self, features: Tensor, targets: Tensor) -> Tensor:
        """The targets, or a DataError that says what is wrong with them."""
        shape = (len(features),)
        if not isinstance(targets, Tensor) or targets.dtype != torch.long or tuple(targets.shape) != shape:
            found = f"{tuple(targets.shape)} of {targets.dtype}" if isinstance(targets, Tensor) else f"{targets!r}"
            raise DataError(f"targets must be a tensor of shape {shape} of torch.int64, but found {found}.")
        # Elsewhere than on the CPU, looking at the values would wait for the device.
        if targets.device.type == "cpu":
            wrong = ((targets < 0) & (targets != UNLABELLED)) | (targets >= self.size)
            if wrong.any():
                number = int(wrong.nonzero()[0])
                raise DataError(
                    f"target {number} is {int(targets[number])}, but the vocabulary has the ids 0 to {self.size - 1}."
                )
        return targets

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.size} tokens"


def tied_readout(input_size: int, size: int, embedding: Tensor | None) -> nn.Linear:
    """o = W h + b with b = 0 at the start; W is the embedding where there is one.

    >>> embedding = nn.Parameter(torch.randn(7, 3))
    >>> tied_readout(3, 7, embedding).weight is embedding
    True
    """
    if embedding is None:
        return readout(input_size, size)
    if embedding.shape[1] != input_size:
        raise ConfigError(
            f"the output is tied to an embedding of size {embedding.shape[1]}, but its features have size "
            f"{input_size}: make the last layer as wide as the embedding, or do not tie them."
        )
    layer = nn.utils.skip_init(nn.Linear, input_size, size, device=embedding.device, dtype=embedding.dtype)
    layer.weight = embedding  # torch refuses a tensor that is no parameter
    nn.init.zeros_(layer.bias)
    return layer


def at_least_single(scores: Tensor) -> Tensor:
    """Scores in which exponentials can be summed: what autocast has lowered to 16 bits is raised to 32."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
