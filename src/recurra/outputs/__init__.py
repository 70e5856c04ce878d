"""Outputs: features -> a distribution over a vocabulary. The file name is the config name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from recurra.named import built
from recurra.outputs.adaptive_softmax import AdaptiveSoftmax
from recurra.outputs.mixture_of_softmaxes import MixtureOfSoftmaxes
from recurra.outputs.output import Output
from recurra.outputs.softmax import Softmax
from recurra.settings import about

__all__ = ["AdaptiveSoftmax", "MixtureOfSoftmaxes", "Output", "Softmax", "build"]


def build(spec: str | Mapping[str, Any], input_size: int, size: int, embedding: Tensor | None = None) -> Output:
    """The output that a config file means: a name, or a table of a name and options.

    >>> import torch
    >>> build({"name": "mixture_of_softmaxes", "components": 3}, 4, 10).log_probabilities(torch.zeros(1, 4)).shape
    torch.Size([1, 10])
    """
    with about("output"):
        return built(Output, spec, input_size, size, embedding)
