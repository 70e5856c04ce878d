"""A sequence to a vector by a Transformer."""

from __future__ import annotations

from typing import final

from torch import nn

from recurra.encoders.dropout import LockedDropout
from recurra.encoders.summaries import summary
from recurra.encoders.summaries.summary import Summarised
from recurra.padding import Padded
from recurra.settings import Part
from recurra.transformer import Form, Transformer


@final
class TransformerEncoder(nn.Module):
    """s = summary(Transformer(drop(x))): what all steps together make of one another, as one vector.

    `summary_by` is mean, max or attention: there is no last state. `input_dropout` drops features of x, `dropout` what
    each part of a layer adds. causal: a step sees itself and those before it alone.

    >>> import torch
    >>> network = TransformerEncoder(3, 8, summary_by="mean", heads=2)
    >>> network(Padded(torch.randn(2, 4, 3), torch.tensor([4, 2]))).vector.shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        input_size: int,
        width: int,
        *,
        summary_by: Part,
        layers: int = 1,
        heads: int = 4,
        feed_forward: int | None = None,
        form: Form = "pre_norm",
        causal: bool = False,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.drop = LockedDropout(input_dropout)
        self.transformer = Transformer(
            input_size,
            width,
            layers=layers,
            heads=heads,
            feed_forward=feed_forward,
            dropout=dropout,
            causal=causal,
            form=form,
        )
        self.summary = summary(summary_by, width, [])
        self.output_size = self.summary.output_size

    def forward(self, x: Padded) -> Summarised:
        """(B, T, I) to (B, output_size)."""
        read = self.transformer.read(self.drop(x)).values
        found: Summarised = self.summary(Padded(read, x.lengths).zeroed(), ())
        return found
