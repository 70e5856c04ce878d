"""Summaries: what a recurrent network made of a sequence, as one vector. The file name is the config name."""

from __future__ import annotations

from collections.abc import Sequence

from recurra.encoders.pyramid import Pyramid
from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.named import built
from recurra.settings import Part, about
from recurra.stacks.recurrent import Recurrent

__all__ = ["Summarised", "Summary", "state_sizes", "summary"]


def summary(spec: Part, size: int, states: Sequence[Sequence[int]]) -> Summary:
    """The summary that a config file means, of outputs of that size and of such final states.

    >>> summary({"name": "attention", "queries": 3}, 8, [[4], [4]]).output_size
    24
    """
    with about("summary"):
        return built(Summary, spec, size, states)


def state_sizes(recurrent: Recurrent | Pyramid) -> list[list[int]]:
    """The sizes of the fields of the last layer's state, per direction.

    >>> state_sizes(Recurrent("lstm", 2, 3, bidirectional=True))
    [[3, 3], [3, 3]]
    """
    return [[field.shape[-1] for field in state] for state in recurrent.start(1)[-1]]
