"""Streams: endless input, read element by element, with an answer after each.

    outputs, s_t = go_on(x_t, s_{t−1})          s: the states of the network, and what a summary has gathered

Both functions, `begin` and `go_on`, are part of an exported program; a run calls those of its model. Of what was read
only the states are kept, so a stream takes as much memory after a million elements as after one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, final

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


@final
class Stream:
    """Reads element after element, and answers after each; its state can be saved and gone on with.

    `run` is the digest of the weights, to which a state belongs.
    """

    def __init__(
        self, task: Reads, predictor: Predictor[Any], running: Running, run: str, state: bytes | None = None
    ) -> None:
        self._task, self._predictor, self._running, self._run = task, predictor, running, run
        self.steps = 0
        """Elements that were read."""
        self._states: States = predictor.begun(running)
        if state is not None:
            self._go_on_with(state)

    def read(self, element: object) -> Prediction:
        """The answer after one more element. After an error, the stream is as it was.

        An element is a word or a piece of text, or the numbers of one step; a piece of several words is read word by
        word.
        """
        example, row = self._task.element(element, self.steps + 1)
        output, states = self._predictor.gone_on(self._running, row, self._states)
        answer = self._task.streamed(example, output)._replace(line=self.steps + 1)
        self._states, self.steps = states, self.steps + 1
        return answer

    def state(self) -> bytes:
        """All that the next elements need, for `stream` of the same run or of what was exported from it."""
        return state_to_bytes(self._run, {"steps": self.steps}, self._states)

    def _go_on_with(self, state: bytes) -> None:
        about, arrays = state_of_bytes(state, run=self._run)
        try:
            steps = int(about["steps"])
            if {name: (each.shape, each.dtype) for name, each in arrays.items()} != {
                name: (each.shape, each.dtype) for name, each in self._states.items()
            }:
                raise ValueError("its arrays are not those of this run")
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(error) from error
        self._states, self.steps = arrays, steps


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
