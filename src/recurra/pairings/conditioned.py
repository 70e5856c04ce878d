"""Two readers, the second of which starts with what the first one remembers."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, final

import torch
from torch import Tensor, nn

from recurra.cells.cell import fields
from recurra.encoders.summaries import state_sizes
from recurra.encoders.summaries.last import Last
from recurra.padding import Padded
from recurra.pairings.pairing import Parts
from recurra.recording import both
from recurra.stacks.recurrent import States

StartState = Literal["cell", "all"]

DELIMITER = "δ"
"""What the vector between two texts is called in pictures."""


class BothRead(NamedTuple):
    """The outputs of both readers, and the last state of the second."""

    first: Padded  # Y, (B, T₁, D)
    second: Padded  # h_1 … h_N, (B, T₂, D)
    last: Tensor  # h_N, (B, D′); of two directions, the last state of each


@final
class Conditioned(nn.Module):
    """Y, s = R₁(a);   δ, h_1 … h_N = R₂([δ; b]) from s   (Rocktäschel et al. 2016, conditional encoding).

    The second reader R₂ has weights of its own and first reads a delimiter δ, a learned vector. Of s it starts with the
    memory c (`state` = "cell"), or with h and c ("all"); a cell without a memory apart from h starts with h.
    In each direction and layer, R₂ starts from the same direction and layer of R₁.
    """

    def __init__(self, input_size: int, parts: Parts, state: StartState) -> None:
        super().__init__()
        self.state = state
        self.first, self.second = parts.stack(input_size), parts.stack(input_size)
        self.delimiter = nn.Parameter(torch.empty(input_size))
        nn.init.normal_(self.delimiter, std=input_size**-0.5)  # as vectors of words
        self.last = Last(self.second.output_size, state_sizes(self.second))

    def forward(self, first: Padded, second: Padded) -> BothRead:
        read, states = self.first(first)
        delimiter = self.delimiter.to(second.values).expand(len(second.lengths), 1, -1)
        after = Padded(torch.cat([delimiter, second.values], 1), both(lambda n: n + 1, second.lengths))
        outputs, ends = self.second(after, self._start(states, after.values))
        without = Padded(outputs.values[:, 1:], second.lengths)
        return BothRead(read, without, self.last(outputs, ends).vector)

    def _start(self, states: States, like: Tensor) -> States:
        """The first reader's last states as those before the second reader's first step."""
        anew = self.second.start(len(like), like)
        return tuple(
            tuple(_kept(old, new, self.state) for old, new in zip(own, other, strict=True))
            for own, other in zip(anew, states, strict=True)
        )


def _kept(start: Any, found: Any, state: StartState) -> Any:
    """A start state with the fields of a final one that are handed on."""
    names = fields(start)
    handed = names[1:] if state == "cell" and len(names) > 1 else names
    return start._replace(**{name: getattr(found, name) for name in handed})
