"""A sequence to a vector by a recurrent network."""

from __future__ import annotations

from typing import Literal, final

from torch import nn

from recurra.cells import Spec
from recurra.encoders.dropout import LockedDropout
from recurra.encoders.pyramid import Pyramid, spread, stack
from recurra.encoders.summaries import state_sizes, summary
from recurra.encoders.summaries.summary import Summarised
from recurra.padding import Padded
from recurra.settings import Part


@final
class RecurrentEncoder(nn.Module):
    """s = summary(Recurrent(drop(x))): a stack of any cell, and one vector of what it gives.

    `input_dropout` drops features of x, `dropout` those between layers. Where a `pyramid` stands in place of the stack,
    the summary is over the steps that it leaves, and weights are spread over those that it read.

    >>> import torch
    >>> network = RecurrentEncoder("gru", 3, 5, summary_by="ends", bidirectional=True)
    >>> network(Padded(torch.randn(2, 4, 3), torch.tensor([4, 2]))).vector.shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        cell: Spec,
        input_size: int,
        hidden: int | list[int],
        *,
        summary_by: Part,
        pyramid: bool = False,
        layers: int | None = None,
        bidirectional: bool = False,
        direction: Literal["forward", "backward"] = "forward",
        merge: str = "concat",
        mix: Literal["last", "concat", "mean", "learned"] = "last",
        skip: Literal["none", "residual", "highway"] = "none",
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        engine: str = "auto",
    ) -> None:
        super().__init__()
        self.drop = LockedDropout(input_dropout)
        self.recurrent = stack(
            pyramid,
            cell,
            input_size,
            hidden,
            layers=layers,
            bidirectional=bidirectional,
            direction=direction,
            merge=merge,
            mix=mix,
            skip=skip,
            dropout=dropout,
            locked=True,
            engine=engine,
        )
        self.summary = summary(summary_by, self.recurrent.output_size, state_sizes(self.recurrent))
        self.output_size = self.summary.output_size

    def forward(self, x: Padded) -> Summarised:
        """(B, T, I) to (B, output_size)."""
        found: Summarised = self.summary(*self.recurrent(self.drop(x)))
        if found.weights is None or not isinstance(self.recurrent, Pyramid):
            return found
        by = 2 ** (len(self.recurrent.layers) - 1)
        return Summarised(found.vector, spread(found.weights, x.lengths, x.values.shape[1], by=by))
