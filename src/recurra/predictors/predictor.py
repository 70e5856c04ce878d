"""Predictor: what of a model is exported, and how its outputs are made from that without torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded, Rows
from recurra.programs.inputs import Recordable, Running

if TYPE_CHECKING:
    from recurra.generation.generated import Manner, TextSource

Output = TypeVar("Output")


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


def softmax(x: NDArray[Any]) -> NDArray[np.float64]:
    """Along the last dimension, in float64.

    >>> softmax(np.zeros((1, 2))).tolist()
    [[0.5, 0.5]]
    """
    x = x.astype(np.float64)
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    found: NDArray[np.float64] = e / e.sum(-1, keepdims=True)
    return found
