"""From where an encoder ended to where a decoder starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from recurra.cells import AnyCell, AnyState
from recurra.cells.cell import fields
from recurra.encoders.memory import Read, carried
from recurra.encoders.pyramid import Pyramid
from recurra.errors import ConfigError
from recurra.stacks.recurrent import Recurrent

How: TypeAlias = Literal["auto", "identity", "map", "direct"]
"""`direct` is for a vector that is no state, `identity` for a state; auto: a state as it is where sizes agree."""


@final
class Bridge(nn.Module):
    """The decoder's start states out of the encoder's, or out of a vector (D1, D4).

        identity   s_0 of layer l = the encoder's state of layer l, both directions side by side
        map        h_0 = tanh(W_h e_h + b_h),  c_0 = W_c e_c + b_c     for each layer, e of the layer below or beside it
        direct     h_0 = v                                             for each layer, c_0 as the cell begins

    `states` names those that the vector gives, such as c alone: c_0 = v. None: all that a map can give, h directly.
    Where the encoder has no c the decoder's comes from h. What else a cell keeps begins as it always does; so does a
    c that means nothing without it, that of an sLSTM.
    """

    def __init__(
        self,
        ends: Sequence[dict[str, int]],
        encoder: Recurrent | Pyramid | None,
        decoder: Sequence[AnyCell],
        how: How,
        *,
        are_last: bool,
        states: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self.states = None if states is None else tuple(states)
        if ends:
            self._check_states(decoder)
        reason = mismatch(ends, encoder, decoder, are_last=are_last)
        if how == "identity" and ends and reason is not None:
            raise ConfigError(f"model.bridge = 'identity' is not possible: {reason}. Use 'auto' or 'map'.")
        self.copies = bool(ends) and reason is None and how != "map"
        self.is_direct = bool(ends) and how == "direct"
        self.maps = nn.ModuleList()
        if self.is_direct:
            for cell in decoder:
                start = cell.start(0, torch.zeros(()))
                sizes = [getattr(start, name).shape[1] for name in self.states or ("h",)]
                if (size := next((each for each in sizes if each != ends[0]["h"]), None)) is not None:
                    raise ConfigError(
                        f"model.direct = true uses the vector of {ends[0]['h']} numbers as the first state without "
                        f"a learned map, but a layer has size {size}: set model.hidden = {ends[0]['h']}, or "
                        "model.direct = false."
                    )
        elif ends and not self.copies:
            for number, cell in enumerate(decoder):
                below = ends[min(number, len(ends) - 1)]
                start = cell.start(0, torch.zeros(()))
                self.maps.append(
                    nn.ModuleDict(
                        {
                            name: nn.Linear(below.get(name, below["h"]), getattr(start, name).shape[1])
                            for name in self.states or carried(cell)
                        }
                    )
                )

    def _check_states(self, decoder: Sequence[AnyCell]) -> None:
        for cell in decoder:
            known = carried(cell)
            for name in self.states or ():
                if name not in known:
                    raise ConfigError(
                        f"model.starts = {list(self.states or ())}: a cell '{cell.name}' has no state '{name}' that a "
                        f"vector can set, only {' and '.join(known)}."
                    )

    def forward(self, read: Read, starts: tuple[AnyState, ...]) -> tuple[AnyState, ...]:
        """A start state for each layer of the decoder, given those that its cells would begin with by themselves."""
        if self.copies:
            assert read.states is not None, "last states were asked for"
            return tuple(
                type(start)(*(torch.cat(each, dim=-1) for each in zip(*layer, strict=True)))
                for start, layer in zip(starts, read.states, strict=True)
            )
        if self.is_direct:
            vector = dict.fromkeys(self.states or ("h",), read.ends[0]["h"])
            return tuple(start._replace(**vector) for start in starts)  # type: ignore[attr-defined]  # a NamedTuple
        if not self.maps:
            return starts
        found = []
        for number, (start, maps) in enumerate(zip(starts, self.maps, strict=True)):
            below = read.ends[min(number, len(read.ends) - 1)]
            new: dict[str, Tensor] = {}
            for name, layer in maps.items():  # type: ignore[operator]  # a ModuleDict
                mapped = layer(below.get(name, below["h"]))
                new[name] = mapped.tanh() if name == "h" else mapped
            found.append(start._replace(**new))  # type: ignore[attr-defined]  # a NamedTuple
        return tuple(found)


def mismatch(
    ends: Sequence[dict[str, int]], encoder: Recurrent | Pyramid | None, decoder: Sequence[AnyCell], *, are_last: bool
) -> str | None:
    """Why the encoder's states cannot be the decoder's as they are; None where they can."""
    if encoder is None or not are_last:
        return "only the last states of a recurrent encoder can be used without a learned map"
    if len(ends) != len(decoder):
        return f"the encoder has {len(ends)} layers, the decoder {len(decoder)}"
    for number, (layer, cell) in enumerate(zip(encoder.start(0), decoder, strict=True), 1):
        start = cell.start(0, torch.zeros(()))
        if fields(layer[0]) != fields(start):
            own_names, names = ", ".join(fields(layer[0])), ", ".join(fields(start))
            return f"in layer {number} the encoder keeps {own_names}, the decoder {names}"
        own = [sum(each.shape[1] for each in same) for same in zip(*layer, strict=True)]
        wanted = [value.shape[1] for value in start]
        if own != wanted:
            return f"in layer {number} the encoder has {own[0]} units, the decoder {wanted[0]}"
    return None
