"""Streams: endless input, read element by element, with an answer after each.

    outputs, s_t = go_on(x_t, s_{t−1})          s: the states of the network, and what a summary has gathered

Both functions, `begin` and `go_on`, are part of an exported program; a run calls those of its model. Of what was read
only the states are kept, so a stream takes as much memory after a million elements as after one. Several runs that read
together keep their states each, and what they say is combined after every element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded
from recurra.data.stream_state import damaged, state_of_bytes, state_to_bytes
from recurra.errors import DataError
from recurra.predictors.predictor import Predictor
from recurra.programs.inputs import Running
from recurra.views.prediction import Prediction

States: TypeAlias = Mapping[str, NDArray[Any]]
"""What a stream remembers, by name."""


class AnyStream(Protocol):
    """What reads element after element: of words, text, steps of a series, or rows of a table that are forecast."""

    steps: int

    def read(self, element: Any, /) -> Prediction: ...
    def state(self) -> bytes: ...


class Reads(Protocol):
    """What a stream needs of a task."""

    def element(self, element: object, number: int) -> tuple[Any, Encoded]: ...
    def streamed(self, example: Any, output: Any) -> Prediction: ...
    def combined(self, example: Any, outputs: Sequence[Any]) -> Any: ...


class Reader(NamedTuple):
    """A network that reads a stream, and how its own run reads an element."""

    task: Reads
    predictor: Predictor[Any]
    running: Running


@final
class Stream:
    """Reads element after element, and answers after each; its state can be saved and gone on with.

    `run` is the digest of the weights, to which a state belongs. The first of several readers answers for all.
    """

    def __init__(self, readers: Sequence[Reader], run: str, state: bytes | None = None) -> None:
        self._readers, self._run = tuple(readers), run
        self.steps = 0
        """Elements that were read."""
        self._states: tuple[States, ...] = tuple(each.predictor.begun(each.running) for each in readers)
        if state is not None:
            self._go_on_with(state)

    def read(self, element: object) -> Prediction:
        """The answer after one more element. After an error, the stream is as it was.

        An element is a word or a piece of text, or the numbers of one step; a piece of several words is read word by
        word.
        """
        number, read = self.steps + 1, list[tuple[Any, Any, States]]()
        for reader, before in zip(self._readers, self._states, strict=True):
            example, row = reader.task.element(element, number)
            read.append((example, *reader.predictor.gone_on(reader.running, row, before)))
        task, (example, output, _) = self._readers[0].task, read[0]
        if len(read) > 1:
            output = task.combined(example, [each for _, each, _ in read])
        answer = task.streamed(example, output)._replace(line=number)
        self._states, self.steps = tuple(after for _, _, after in read), number
        return answer

    def state(self) -> bytes:
        """All that the next elements need, for `stream` of the same run or of what was exported from it."""
        return state_to_bytes(self._run, {"steps": self.steps}, _named(self._states))

    def _go_on_with(self, state: bytes) -> None:
        about, arrays = state_of_bytes(state, run=self._run)
        try:
            steps = int(about["steps"])
            if {name: (each.shape, each.dtype) for name, each in arrays.items()} != {
                name: (each.shape, each.dtype) for name, each in _named(self._states).items()
            }:
                raise ValueError("its arrays are not those of this run")
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(error) from error
        self._states, self.steps = tuple(_apart(arrays, self._states)), steps


def _named(states: Sequence[States]) -> dict[str, NDArray[Any]]:
    """The states of all readers by names of their own; those of the first have their own names.

    >>> sorted(_named([{"h": np.zeros(1)}, {"h": np.ones(1)}]))
    ['1_h', 'h']
    """
    return {
        f"{number}_{name}" if number else name: each for number, one in enumerate(states) for name, each in one.items()
    }


def _apart(arrays: States, like: Sequence[States]) -> list[States]:
    """What `_named` has put together."""
    return [{name: arrays[f"{number}_{name}" if number else name] for name in one} for number, one in enumerate(like)]


def frame_of(element: object, place: str) -> list[list[Any]]:
    """One step of numbers as a series of one step.

    >>> frame_of(3.0, "element 1"), frame_of([1, 2], "element 1"), frame_of(np.ones(2), "element 1")
    ([[3.0]], [[1, 2]], [[1.0, 1.0]])
    """
    if isinstance(element, np.ndarray | np.generic):
        element = element.tolist()
    if isinstance(element, int | float) and not isinstance(element, bool):
        return [[element]]
    if isinstance(element, list | tuple) and element and all(isinstance(each, int | float) for each in element):
        return [[*element]]
    raise DataError(
        f"{place}: an element of this stream is a number or a list of the numbers of one step, but is {element!r:.60}."
    )
