"""Pyramid: a stack whose layers read half as many steps each (Chan et al., Listen, Attend and Spell, 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells import Spec
from recurra.encoders.dropout import Dropout
from recurra.errors import ConfigError
from recurra.padding import Padded, beside
from recurra.recording import both
from recurra.stacks.recurrent import Recurrent, States


@final
class Pyramid(nn.Module):
    """A stack of cells in which each layer above the first reads two steps of the layer below as one.

        h¹_t = layer_1(x)_t                           t = 1 … n
        hˡ_i = layer_l([hˡ⁻¹_{2i-1}; hˡ⁻¹_{2i}])_i     i = 1 … ⌈nˡ⁻¹ / 2⌉

    A last step without a partner has zeros beside it. Three layers leave a quarter of the steps, so that seconds of
    speech, a hundred frames each, become a memory that is short enough to be attended to. Dropout is on what goes from
    one layer to the next.

    >>> pyramid = Pyramid("gru", 3, 5, layers=3, bidirectional=True)
    >>> outputs, states = pyramid(Padded(torch.randn(2, 7, 3), torch.tensor([7, 4])))
    >>> outputs.values.shape, outputs.lengths.tolist()
    (torch.Size([2, 2, 10]), [2, 1])
    >>> states[2][0].h.shape                    # third layer, forward direction
    torch.Size([2, 5])
    """

    def __init__(
        self,
        cell: Spec,
        input_size: int,
        hidden_size: int | Sequence[int],
        *,
        layers: int | None = None,
        bidirectional: bool = False,
        direction: Literal["forward", "backward"] = "forward",
        merge: str = "concat",
        dropout: float = 0.0,
        locked: bool = False,
        engine: str = "auto",
    ) -> None:
        super().__init__()
        widths = list(hidden_size) if isinstance(hidden_size, Sequence) else [hidden_size] * (layers or 1)
        if not widths or (layers is not None and layers != len(widths)):
            raise ConfigError(
                f"hidden_size = {widths} gives {len(widths)} widths, but a pyramid has {layers or 1} layers."
            )
        self.input_size = input_size
        self.bidirectional, self.direction = bidirectional, direction
        self.layers = nn.ModuleList()
        for width in widths:
            layer = Recurrent(
                cell,
                input_size,
                width,
                bidirectional=bidirectional,
                direction=direction,
                merge=merge,
                engine=engine,
            )
            self.layers.append(layer)
            input_size = 2 * layer.output_size
        self.output_size = layer.output_size
        self.dropout = Dropout(dropout, locked=locked)

    def forward(self, x: Padded, *, every: bool = False) -> tuple[Padded, States]:
        """Outputs (B, T', output_size), zero on padding, and the states of each layer after its last real step.

        every=True returns the state after each step instead, fields (B, Tˡ, n): a layer has as many steps as it reads.
        """
        found = []
        for number, layer in enumerate(self._layers()):
            if number:
                x = paired(x)
                x = Padded(self.dropout(x.values), x.lengths)
            x, [states] = layer(x, every=every)
            found.append(states)
        return x, tuple(found)

    def start(self, rows: int, like: Tensor | None = None) -> States:
        """The states before the first step, for so many rows."""
        return tuple(state for layer in self._layers() for state in layer.start(rows, like))

    def steps(self, lengths: Tensor) -> list[Tensor]:
        """How many steps of rows of such lengths each layer reads.

        >>> [each.tolist() for each in Pyramid("elman", 1, 1, layers=3).steps(torch.tensor([9, 4, 0]))]
        [[9, 4, 0], [5, 2, 0], [3, 1, 0]]
        """
        found = [lengths]
        for _ in self._layers()[1:]:
            found.append(halved(found[-1]))
        return found

    @property
    def cells(self) -> list[nn.ModuleList]:
        """The cells of each layer, one for each direction."""
        return [layer.cells[0] for layer in self._layers()]  # type: ignore[misc]  # ModuleLists of cells

    def _layers(self) -> list[Recurrent]:
        return list(self.layers)  # type: ignore[arg-type]  # a ModuleList of them


def paired(x: Padded) -> Padded:
    """Steps 1 and 2 beside each other as the first, 3 and 4 as the second, …; zeros beside a last one alone.

    >>> found = paired(Padded(torch.arange(1.0, 7.0).view(2, 3, 1), torch.tensor([3, 2])))
    >>> found.values.tolist(), found.lengths.tolist()
    ([[[1.0, 2.0], [3.0, 0.0]], [[4.0, 5.0], [0.0, 0.0]]], [2, 1])
    """
    values = x.zeroed().values
    # Both slices have as many steps, whether there is a last one alone or not: so one program does all lengths.
    seconds = functional.pad(values, (0, 0, 0, 1))[:, 1::2]
    return Padded(torch.cat([values[:, ::2], seconds], dim=2), halved(x.lengths))


def halved(lengths: Tensor) -> Tensor:
    """⌈n / 2⌉."""
    return both(lambda n: torch.div(n + 1, 2, rounding_mode="floor"), lengths)


def spread(weights: Tensor, lengths: Tensor, steps: int, *, by: int) -> Tensor:
    """(B, K, T) from weights (B, K, S) of places into which `by` steps went each: a step has its share of its place's.

    >>> spread(torch.tensor([[[0.4, 0.6]]]), torch.tensor([3]), 4, by=2).tolist()
    [[[0.20000000298023224, 0.20000000298023224, 0.6000000238418579, 0.0]]]
    """
    at = torch.arange(steps, device=weights.device)
    ends = beside(lengths, weights).unsqueeze(1)
    inside = (ends - at // by * by).clamp(max=by)  # (B, T)
    shares = (at < ends) / inside.clamp(min=1)
    return weights[..., at // by] * shares.to(weights.dtype).unsqueeze(1)


def stack(
    pyramid: bool,
    cell: Spec,
    input_size: int,
    hidden_size: int | Sequence[int],
    *,
    layers: int | None = None,
    bidirectional: bool = False,
    direction: Literal["forward", "backward"] = "forward",
    merge: str = "concat",
    mix: Literal["last", "concat", "mean", "learned"] = "last",
    skip: Literal["none", "residual", "highway"] = "none",
    dropout: float = 0.0,
    locked: bool = False,
    engine: str = "auto",
) -> Recurrent | Pyramid:
    """Layers of cells upon each other, each of which halves the steps or leaves them.

    No way leads past a layer that halves them, and its output cannot be mixed with those of others.

    >>> type(stack(True, "gru", 3, 5, layers=2)).__name__
    'Pyramid'
    """
    if pyramid:
        return Pyramid(
            cell,
            input_size,
            hidden_size,
            layers=layers,
            bidirectional=bidirectional,
            direction=direction,
            merge=merge,
            dropout=dropout,
            locked=locked,
            engine=engine,
        )
    return Recurrent(
        cell,
        input_size,
        hidden_size,
        layers=layers,
        bidirectional=bidirectional,
        direction=direction,
        merge=merge,
        mix=mix,
        skip=skip,
        dropout=dropout,
        locked=locked,
        engine=engine,
    )
