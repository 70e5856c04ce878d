"""A training step while it is recorded as a CUDA graph, or computed as it will be recorded.

A graph repeats what the GPU did, not what Python saw: numbers that Python reads, such as lengths of rows, would stay
those of the batch that was recorded. So each batch has a copy of its lengths on the GPU, its twin, and what is computed
from lengths there comes from the twin.

>>> lengths, copy = torch.tensor([3, 1]), torch.tensor([3, 1])
>>> with recording([(lengths, copy)]):
...     shorter = both(lambda n: n - 1, lengths)
...     twin(shorter)
tensor([2, 0])
>>> is_recording(), twin(lengths)
(False, None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from recurra.errors import EngineError


class NotRecordedError(EngineError):
    """Something in a training step cannot be recorded."""


class Recording:
    """One step that is computed so: the twins of its numbers."""

    def __init__(self, twins: Iterable[tuple[Tensor, Tensor]]) -> None:
        self.twins = {id(numbers): (numbers, copy) for numbers, copy in twins}  # the pair keeps both alive


_present: list[Recording] = []  # at most one; the thread of the backward pass looks here too


@contextmanager
def recording(twins: Iterable[tuple[Tensor, Tensor]]) -> Iterator[Recording]:
    """Inside, a step is computed as it is recorded: with so many numbers of the CPU known on the GPU."""
    assert not _present, "one step is recorded at a time"
    _present.append(Recording(twins))
    try:
        yield _present[0]
    finally:
        _present.clear()


_graphed: ContextVar[bool] = ContextVar("graphed", default=False)
"""Whether what this thread computes is a part of a graph of somebody's own."""


@contextmanager
def graphed() -> Iterator[None]:
    """Inside, something less than a training step is recorded as a CUDA graph, or computed as it will be: a replay
    launches all its kernels at once, so that only what they take the GPU counts.

    >>> with graphed():
    ...     is_graphed()
    True
    >>> is_graphed()
    False
    """
    before = _graphed.set(True)
    try:
        yield
    finally:
        _graphed.reset(before)


def is_graphed() -> bool:
    """Whether what is computed now is recorded as a CUDA graph, or computed as it will be recorded."""
    return is_recording() or _graphed.get()


def is_recording() -> bool:
    """Whether a whole training step is recorded now, or computed as it will be."""
    return bool(_present)


def twin(numbers: Tensor) -> Tensor | None:
    """The copy of numbers on the GPU, where it is known."""
    found = _present[0].twins.get(id(numbers)) if _present else None
    return None if found is None else found[1]


def both(function: Callable[..., Tensor], *numbers: Tensor) -> Tensor:
    """function(*numbers); of their twins too, where all have one, so that the result has a twin."""
    result, copies = function(*numbers), [copy for each in numbers if (copy := twin(each)) is not None]
    if len(copies) == len(numbers):
        _present[0].twins[id(result)] = (result, function(*copies))
    return result


def refuse_while_recording(like: Tensor, what: str) -> None:
    """Raise a NotRecordedError if a graph is recorded: what is read from the CPU would never change."""
    if _present and like.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise NotRecordedError(f"{what} is read from the CPU")
