"""How a training run shows itself while it runs: a bar on a terminal, plain lines in a pipe, or nothing."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO, final, runtime_checkable

from recurra.training.pace import Clock, Pace, duration, speed

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


@runtime_checkable
class Progress(Protocol):
    """What the training loop tells. Leaving a `with` stops it, also after Ctrl-C, and the terminal is as it was."""

    def start(
        self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None
    ) -> None: ...

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None: ...

    def validating(self, done: int, total: int) -> None: ...

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None: ...

    def note(self, text: str) -> None: ...

    def stop(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def progress(stream: TextIO, *, quiet: bool = False) -> Progress:
    """The way to show progress that suits a stream.

    >>> import io
    >>> type(progress(io.StringIO())).__name__
    'PlainLines'
    >>> type(progress(io.StringIO(), quiet=True)).__name__
    'Silent'
    """
    if quiet:
        return Silent()
    can_redraw = stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return Bar(stream) if can_redraw and importlib.util.find_spec("rich") is not None else PlainLines(stream)


@final
class Silent(Progress):
    """Nothing is shown."""

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        pass

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        pass

    def validating(self, done: int, total: int) -> None:
        pass

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def stop(self) -> None:
        pass


@final
class PlainLines(Progress):
    """One plain line about every ten seconds and at each validation, with the time since the start.

    >>> import sys
    >>> now = 0.0
    >>> lines = PlainLines(sys.stdout, clock=lambda: now)
    >>> lines.start(0, 8, 2)
    [0:00] training: 8 steps, 2 epochs
    >>> now = 20.0
    >>> lines.step(4, 1.0, 0.5, 0.001, 600)
    [0:20] step 4/8  epoch 1.0/2  loss 0.5  30 tokens/s  ETA 0:20
    >>> lines.valid(4, {"accuracy": 0.75}, "accuracy", True)
    [0:20] valid at step 4: accuracy 0.75 (best so far)
    """

    def __init__(self, stream: TextIO, *, every: float = 10.0, clock: Clock = time.monotonic) -> None:
        self._stream: TextIO | None = stream
        self._pace, self._every = Pace(clock), every
        self._next = self._pace.now + every

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        self._pace.start(first_step, total_steps, epochs, seconds)
        size = [f"{count} {what}" for count, what in ((total_steps, "steps"), (epochs, "epochs")) if count is not None]
        size += [f"{duration(seconds)} at most"] if seconds is not None else []
        size += [f"from step {first_step}"] if first_step else []
        self._say("training: " + ", ".join(size) if size else "training")

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self._pace.step(step, epoch, loss, learning_rate, tokens)
        if self._pace.now >= self._next:
            self._say("  ".join(text for _, text in _standing(self._pace) if text))

    def validating(self, done: int, total: int) -> None:
        self._pace.validating(done, total)
        if self._pace.now >= self._next:
            self._say(f"validating {done}/{total}")

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        self._pace.valid(scores, first, best=best)
        self._say(f"valid at step {step}: {_in_words(scores, first, best=best)}")

    def note(self, text: str) -> None:
        self._pace.look()
        self._say(text)

    def stop(self) -> None:
        pass

    def _say(self, text: str) -> None:
        self._next = self._pace.now + self._every
        if self._stream is None:
            return
        line = f"[{duration(self._pace.elapsed)}] {text}\n"
        try:
            self._stream.write(_encodable(line, getattr(self._stream, "encoding", None)))
            self._stream.flush()
        except (OSError, ValueError):  # whoever read the pipe has left, or the stream is closed: training goes on
            self._stream = None


@final
class Bar(Progress):
    """A line at the foot of a terminal, redrawn ten times a second; validations and notes scroll by above it."""

    def __init__(self, stream: TextIO, *, clock: Clock = time.monotonic) -> None:
        from rich.console import Console

        self._console = Console(file=stream)
        self._pace = Pace(clock)
        self._next = self._pace.now
        self._live: Live | None = None

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        from rich.live import Live

        self._pace.start(first_step, total_steps, epochs, seconds)
        # Drawn by the loop itself: no thread, so nothing is drawn after an error has been shown.
        self._live = Live(get_renderable=self._drawn, console=self._console, auto_refresh=False)
        self._live.start(refresh=True)

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self._pace.step(step, epoch, loss, learning_rate, tokens)
        if self._pace.now >= self._next:
            self._draw()

    def validating(self, done: int, total: int) -> None:
        self._pace.validating(done, total)
        if self._pace.now >= self._next:
            self._draw()

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        self._pace.valid(scores, first, best=best)
        self.note(f"[{duration(self._pace.elapsed)}] step {step}: {_in_words(scores, first, best=best)}")

    def note(self, text: str) -> None:
        try:
            text = _encodable(text, self._console.encoding)
            self._console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
        except OSError:  # the terminal has gone away: training goes on
            self.stop()
        self._draw()

    def stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError):
                live.stop()

    def _draw(self) -> None:
        self._next = self._pace.now + 0.1
        if self._live is not None:
            try:
                self._live.refresh()
            except OSError:
                self.stop()

    def _drawn(self) -> Text:
        """One line: as much of the standing as fits, and a bar in what room is left."""
        from rich.text import Text

        width = self._console.width - 1
        pace = self._pace
        reserved = max(width // 6, 10) if width >= 60 and pace.total_steps else 0
        line = Text("  ".join(fitting(_standing(pace), width - reserved)), no_wrap=True, overflow="crop")
        size = min(width - line.cell_len - 2, 30)
        if pace.total_steps and size >= 8:
            full, empty = ("#", ".") if self._console.options.ascii_only else ("█", "░")
            done = round(size * min(pace.at / pace.total_steps, 1.0))
            line = Text.assemble((full * done + empty * (size - done), "cyan"), "  ", line, no_wrap=True)
        return line


def fitting(parts: Sequence[tuple[int, str]], width: int) -> list[str]:
    """The texts that fit in a width with two blanks between them; that of the highest rank is the first to go.

    >>> fitting([(1, "step 12/99"), (3, "epoch 2"), (2, "loss 0.41")], 21)
    ['step 12/99', 'loss 0.41']
    """
    kept = [part for part in parts if part[1]]
    while kept and sum(len(text) + 2 for _, text in kept) - 2 > width:
        kept.remove(max(kept))
    return [text for _, text in kept]


def _standing(pace: Pace) -> list[tuple[int, str]]:
    """What there is to say of a run, each with its rank: 0 is what is said even where nothing else fits."""
    of_steps = f"/{pace.total_steps}" if pace.total_steps is not None else ""
    of_epochs = f"/{pace.epochs}" if pace.epochs is not None else ""
    best = f" (best {pace.best:.4g})" if pace.best is not None and pace.best != pace.last else ""
    parts = [(0, f"step {pace.at}{of_steps}")]
    if pace.validation is not None:
        parts.append((1, "validating {}/{}".format(*pace.validation)))
    if pace.loss is not None:
        parts += [(6, f"epoch {pace.epoch:.1f}{of_epochs}"), (2, f"loss {pace.loss:.4g}")]
    if pace.last is not None:
        parts.append((4, f"{pace.metric} {pace.last:.4g}{best}"))
    if pace.loss is not None:
        parts += [(5, f"{speed(pace.tokens_per_second)} tokens/s"), (3, f"ETA {duration(pace.remaining)}")]
    return parts


def _in_words(scores: Mapping[str, float], first: str, *, best: bool) -> str:
    """The first metric first; others that were not defined on this data are left out.

    >>> _in_words({"f1": 0.5, "accuracy": 0.25, "unknown_accuracy": math.nan}, "accuracy", best=True)
    'accuracy 0.25 (best so far)  f1 0.5'
    """
    known = [
        (n, x)
        for n, x in scores.items()
        if n == first or not (math.isnan(x) or n in ("count", "characters", "unknown"))
    ]
    ordered = sorted(known, key=lambda score: score[0] != first)
    mark = " (best so far)" if best else ""
    return "  ".join(f"{name} {value:.4g}{mark if name == first else ''}" for name, value in ordered)


def _encodable(text: str, encoding: str | None) -> str:
    """The text, with a ? for what a stream cannot say.

    >>> _encodable("größer", "ascii")
    'gr??er'
    """
    return text.encode(encoding or "utf-8", "replace").decode(encoding or "utf-8")
