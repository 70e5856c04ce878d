"""Where a training run stands, how fast it goes, and when it will end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias, final

Clock: TypeAlias = Callable[[], float]


@final
class Pace:
    """The steps, scores and pauses of a run, as they are told.

    Speed is that of the last `window` seconds of training, validation not counted. The time that remains is the
    remaining steps at that speed, lengthened by the share of the time that validation has taken so far; or what is left
    of the time that the run may take, where that is less.

    >>> now = 0.0
    >>> pace = Pace(lambda: now)
    >>> pace.start(first_step=0, total_steps=10, epochs=None)
    >>> for step in range(1, 5):
    ...     now += 2.0
    ...     pace.step(step, epoch=0.0, loss=1.0, learning_rate=0.1, tokens=300)
    >>> pace.tokens_per_second, pace.remaining
    (150.0, 12.0)
    """

    def __init__(self, clock: Clock = time.monotonic, *, window: float = 30.0) -> None:
        self._clock, self._window = clock, window
        self.start(0, None, None)

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        """Begin; whatever was told of an earlier run is forgotten. `seconds`: so long it may still take."""
        self.at = first_step
        self.seconds = seconds
        self.total_steps, self.epochs = total_steps, epochs
        self.epoch = self.learning_rate = 0.0
        self.loss: float | None = None  # smoothed
        self.validation: tuple[int, int] | None = None  # done, total, while it lasts
        self.metric = ""
        self.last: float | None = None
        self.best: float | None = None
        self.began = self.now = self._clock()
        self._steps = self._tokens = 0
        self._paused = 0.0  # seconds of validation so far, without the present one
        self._pause_began: float | None = None
        # (seconds of training, step, tokens), a tenth of a second apart or more
        self._seen = deque([(self.began, first_step, 0)])

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self._resume()
        self.at, self.epoch, self.learning_rate = step, epoch, learning_rate
        self._steps += 1
        self._tokens += tokens
        if self.loss is None or self.loss != self.loss:  # NaN, from which a run may recover
            self.loss = loss
        else:
            self.loss += (loss - self.loss) * max(0.02, 1 / self._steps)
        seen, trained = self._seen, self.now - self._paused
        if trained - seen[-1][0] >= 0.1:
            seen.append((trained, step, self._tokens))
            while len(seen) > 2 and seen[1][0] <= trained - self._window:
                seen.popleft()

    def validating(self, done: int, total: int) -> None:
        self.now = self._clock()
        if self._pause_began is None:
            self._pause_began = self.now
        self.validation = done, total

    def valid(self, scores: Mapping[str, float], first: str, *, best: bool) -> None:
        self._resume()
        self.metric, self.last = first, scores.get(first)
        if best:
            self.best = self.last

    def look(self) -> None:
        """Take note of the time, nothing else."""
        self.now = self._clock()

    def _resume(self) -> None:
        self.now = self._clock()
        if self._pause_began is not None:
            self._paused += self.now - self._pause_began
            self._pause_began = self.validation = None

    @property
    def elapsed(self) -> float:
        return self.now - self.began

    @property
    def tokens_per_second(self) -> float | None:
        return self._speed(2)

    @property
    def remaining(self) -> float | None:
        """Seconds to the last step, or to the end of the time; None while neither is known."""
        left = None if self.seconds is None else max(self.seconds - self.elapsed, 0.0)
        pause = self.now - self._pause_began if self._pause_began is not None else 0.0
        trained, speed = self.elapsed - self._paused - pause, self._speed(1)
        if self.total_steps is None or not speed or trained <= 0:
            return left
        by_steps = max(self.total_steps - self.at, 0) / speed * self.elapsed / trained
        return by_steps if left is None else min(by_steps, left)

    def _speed(self, column: int) -> float | None:
        before, last = self._seen[0], self._seen[-1]
        return (last[column] - before[column]) / (last[0] - before[0]) if last[0] > before[0] else None


def duration(seconds: float | None) -> str:
    """
    >>> duration(65), duration(3 * 3600 + 62), duration(100 * 3600), duration(None)
    ('1:05', '3:01:02', '4d 4h', '?')
    """
    if seconds is None:
        return "?"
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d {hours % 24}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def speed(number: float | None) -> str:
    """
    >>> speed(532.4), speed(5321.0), speed(1.25e6), speed(None)
    ('532', '5.3k', '1.2M', '?')
    """
    if number is None:
        return "?"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:.0f}"
