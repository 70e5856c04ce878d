"""A non-local block over the steps of a sequence, and over the places within a step where its numbers are a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

from torch import nn

from recurra.attention.non_local import NonLocal
from recurra.cells.weights import check_size
from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.settings import Part, about, name_of


@final
class NonLocalSteps(nn.Module):
    """x ← NonLocal(x), where x (B, T, F) is a map over T, or over T and the places of a shape.

        shape = []        C = F            a map (T): every step sees all steps
        shape = [n]       C = F / n        a map (T, n), such as the bands of a spectrogram
        shape = [h, w]    C = F / (h w)    a map (T, h, w), such as the pixels of a film

    Places of a step stand row after row, and the channels of a place side by side.

    >>> import torch
    >>> x = Padded(torch.randn(2, 5, 12), torch.tensor([5, 3]))
    >>> block = NonLocalSteps(12, similarity="additive", shape=[2, 3])
    >>> torch.equal(block(x).values, x.values)                       # W_z starts at 0
    True
    """

    def __init__(
        self, size: int, *, similarity: Part = "dot", shape: Sequence[int] = (), inner: int | None = None
    ) -> None:
        super().__init__()
        self.shape = tuple(check_size(each, "shape") for each in shape)
        places = math.prod(self.shape)
        if len(self.shape) > 2 or size % places:
            raise ConfigError(
                f"shape = {list(shape)}: a step has {size} numbers, which must be a whole number for each place of a "
                "map of at most two dimensions, as in shape = [8, 8]."
            )
        self.block = NonLocal(size // places, inner=inner, similarity=similarity)

    def forward(self, x: Padded) -> Padded:
        """The same shape as x."""
        if x.values.shape[1] == 0:
            return x
        channels, steps = self.block.channels, x.values.shape[1]
        placed = x.values.unflatten(2, (*self.shape, channels)).movedim(-1, 1)  # (B, C, T, ...)
        mask = None
        if not x.is_full:
            mask = x.mask.view(len(x.lengths), steps, *(1 for _ in self.shape)).expand(-1, -1, *self.shape)
        return Padded(self.block(placed, mask).movedim(1, -1).flatten(2), x.lengths)


def non_local_steps(spec: Part, size: int) -> NonLocalSteps | None:
    """The block that model.non_local means: a similarity, or a table with its options, shape and inner; or none.

    >>> non_local_steps({"name": "projected_dot", "size": 4, "shape": [3]}, 12).block.channels
    4
    """
    if name_of(spec) == "none":
        return None
    with about("model", "non_local"):
        if isinstance(spec, str):
            return NonLocalSteps(size, similarity=spec)
        own = {name: value for name, value in spec.items() if name not in ("shape", "inner")}
        shape, inner = spec.get("shape", []), spec.get("inner")
        if not isinstance(shape, list) or not all(isinstance(each, int) for each in shape):
            raise ConfigError(f"shape must be a list of whole numbers, such as [8, 8], but is {shape!r}.")
        if inner is not None and not isinstance(inner, int):
            raise ConfigError(f"inner must be a whole number, but is {inner!r}.")
        return NonLocalSteps(size, similarity=own, shape=shape, inner=inner)
