"""Predictor: what of a model is exported, and how its outputs are made from that without torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError
from recurra.frozen import NamedTuple
from recurra.predictors.trees import leaves, named, refilled
from recurra.programs.inputs import Input, Recordable, Running, called
from recurra.programs.searchable import Usual

if TYPE_CHECKING:
    from recurra.generation.generated import Manner, TextSource
    from recurra.predictors.streaming import AnyStream

Output = TypeVar("Output")

BEGIN, GO_ON = "begin", "go_on"
"""The functions of streams: states before the first element, and what follows from an element and states."""


class Predictor(ABC, Generic[Output]):
    """Both halves of an exported model: functions of tensors, which are recorded, and what calls the recorded ones."""

    @abstractmethod
    def functions(self, model: Any) -> list[Recordable]:
        """What of a model is recorded; its rows may have different lengths. (torch)"""

    @abstractmethod
    def outputs(self, running: Running, rows: Sequence[Encoded], *, detail: bool = False) -> list[Output]:
        """What Task.predict gives for a batch of the same rows."""

    def scored_whole(self, running: Running, rows: Sequence[Encoded]) -> list[Output] | None:
        """Outputs to be scored, where rows follow on each other and are not predicted apart; None: they are."""
        return None

    def usual(self) -> Usual:
        """How a C program looks for answers where it says nothing else; empty where there is no search."""
        return {}

    def refusal_of_streams(self, model: Any) -> str | None:
        """Why a model cannot read endless input, one element after the other; None: it can. (torch)"""
        return "it answers whole inputs"

    def begun(self, running: Running) -> dict[str, NDArray[Any]]:
        """The states before the first element of a stream; an error where there is none."""
        if GO_ON not in running.program.functions:
            raise ConfigError("this model cannot read a stream: it reads each input as a whole.")
        return called(running, BEGIN, {})

    def gone_on(
        self, running: Running, row: Encoded, states: Mapping[str, NDArray[Any]]
    ) -> tuple[Output, dict[str, NDArray[Any]]]:
        """The output for one more element of a stream, a row with one step or a few, and the states after it."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def stream(self, task: Any, running: Running, run: str, state: bytes | None = None) -> AnyStream:
        """What reads endless input for a task; `run` is the digest of the weights, to which a state belongs."""
        from recurra.predictors.streaming import Reader, Stream

        return Stream([Reader(task, self, running)], run, state)

    def writer(self, running: Running, manner: Manner) -> TextSource | None:
        """What writes texts with the model; None where it writes none."""
        return None


class Programmed(NamedTuple):
    """An exported model, as the views of a task ask it."""

    predictor: Predictor[Any]
    running: Running

    def output(self, row: Encoded) -> Any:
        """What it says of one encoded example, in detail."""
        [found] = self.predictor.outputs(self.running, [row], detail=True)
        return found


def padded(rows: Rows, field: str, dtype: type) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """A field of several rows as one array, and the length of each row.

    >>> padded(Rows([{"ids": np.array([4, 5])}, {"ids": np.array([6])}]), "ids", np.int64)[0].tolist()
    [[4, 5], [6, 0]]
    """
    found = rows.flat(field)
    return found.padded(dtype), found.lengths.astype(np.int64)


def pictured(rows: Rows) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The pictures of several rows as one array (B, C, H, W) with zeros for padding, and how high and wide they are."""
    from recurra.data.images import unpacked

    each = [unpacked(row["picture"], row["shape"]).transpose(2, 0, 1) for row in rows]
    sizes = np.array([picture.shape[1:] for picture in each], np.int64).reshape(-1, 2)
    found = np.zeros((len(each), each[0].shape[0] if each else 1, *sizes.max(0, initial=1)), np.uint8)
    for into, picture in zip(found, each, strict=True):
        into[:, : picture.shape[1], : picture.shape[2]] = picture
    return found, sizes[:, 0].copy(), sizes[:, 1].copy()


def softmax(x: NDArray[Any]) -> NDArray[np.float64]:
    """Along the last dimension, in float64.

    >>> softmax(np.zeros((1, 2))).tolist()
    [[0.5, 0.5]]
    """
    x = x.astype(np.float64)
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    found: NDArray[np.float64] = e / e.sum(-1, keepdims=True)
    return found


def of_stream(
    begin: Any, inputs: Sequence[Input], go_on: Callable[..., tuple[Mapping[str, Any], Any]]
) -> list[Recordable]:
    """Both functions of a stream: `begin` are the states before it, a tree of tensors (1, n); `go_on` takes a tensor
    for each of the inputs, then such states of B rows, and gives outputs and states. (torch)"""
    of_states = [Input(f"state{number}", ("B", *leaf.shape[1:])) for number, leaf in enumerate(leaves(begin))]

    def gone_on(*tensors: Any) -> Mapping[str, Any]:
        outputs, states = go_on(*tensors[: len(inputs)], refilled(begin, iter(tensors[len(inputs) :])))
        return {**outputs, **named("state", states)}

    return [
        Recordable(BEGIN, [], lambda: named("state", begin)),
        Recordable(GO_ON, [*inputs, *of_states], gone_on),
    ]
