"""Functions of the user's that are called while a model is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

from recurra.training.log import TrainLine, ValidLine
from recurra.training.progress import Progress


@final
class Callbacks(Progress):
    """Another way to show progress, and functions that are called with each step and each validation.

    >>> from recurra.training.progress import Silent
    >>> losses = []
    >>> Callbacks(Silent(), on_step=lambda line: losses.append(line.loss)).step(1, 0.5, 2.25, 0.001, 600)
    >>> losses
    [2.25]
    """

    def __init__(
        self,
        shown: Progress,
        on_step: Callable[[TrainLine], object] | None = None,
        on_validation: Callable[[ValidLine], object] | None = None,
    ) -> None:
        self._shown, self._on_step, self._on_validation = shown, on_step, on_validation
        self._epoch = 0.0

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        self._shown.start(first_step, total_steps, epochs, seconds)

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self._shown.step(step, epoch, loss, learning_rate, tokens)
        self._epoch = epoch
        if self._on_step is not None:
            self._on_step(TrainLine(step, epoch, loss, learning_rate))

    def validating(self, done: int, total: int) -> None:
        self._shown.validating(done, total)

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        self._shown.valid(step, scores, first, best)
        if self._on_validation is not None:
            self._on_validation(ValidLine(step, self._epoch, dict(scores), best=best))

    def note(self, text: str) -> None:
        self._shown.note(text)

    def stop(self) -> None:
        self._shown.stop()
