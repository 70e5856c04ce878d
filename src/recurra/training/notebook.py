"""Progress in a notebook: how far training is, its curves, and a table of the validations, drawn anew as it goes on."""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, final

from recurra.training.curves import learning_curves
from recurra.training.log import Line, TrainLine, ValidLine
from recurra.training.pace import Clock, Pace, duration, speed
from recurra.training.progress import Progress
from recurra.views.page import in_notebook, table_in_html
from recurra.views.table import Table

EVERY = 1.0
"""Seconds between two drawings."""

MOST_LINES = 400
"""Losses that are drawn: of more, every second one is dropped."""

ROWS = 8
"""Validations that the table shows, the last ones, and the best before them."""

NAMES = 4
"""Scores that the table shows."""


def is_notebook() -> bool:
    """Whether this is a notebook that shows HTML.

    >>> is_notebook()
    False
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@final
class Notebook(Progress):
    """Progress as HTML that replaces itself; `show` takes the first, and returns what takes the next ones."""

    def __init__(self, *, show: Callable[[str], Callable[[str], object]] | None = None, clock: Clock = time.monotonic):
        self._show = displayed if show is None else show
        self._update: Callable[[str], object] | None = None
        self._pace = Pace(clock)
        self._next = self._pace.now
        self._lines: list[Line] = []
        self._valid: list[ValidLine] = []
        self._notes: list[str] = []
        self._every = self._seen = 1
        self._first = ""
        self._is_done = False

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        self._pace.start(first_step, total_steps, epochs, seconds)
        self._draw()

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self._pace.step(step, epoch, loss, learning_rate, tokens)
        self._seen += 1
        if self._seen % self._every == 0:
            self._lines.append(TrainLine(step, epoch, loss, learning_rate))
            if len(self._lines) > MOST_LINES:
                del self._lines[1::2]
                self._every *= 2
        self._draw_if_due()

    def validating(self, done: int, total: int) -> None:
        self._pace.validating(done, total)
        self._draw_if_due()

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        self._pace.valid(scores, first, best=best)
        self._first = first
        self._valid.append(ValidLine(step, self._pace.epoch, dict(scores), best=best, seconds=self._pace.elapsed))
        self._draw()

    def note(self, text: str) -> None:
        self._pace.look()
        self._notes.append(text)
        self._draw()

    def stop(self) -> None:
        self._pace.look()
        if self._update is not None and not self._is_done:
            self._is_done = True
            self._draw()

    def html(self) -> str:
        """All that is shown now."""
        notes = "".join(f"<div>{escape(note)}</div>" for note in self._notes)
        return in_notebook(f'<div style="max-width:60rem">{notes}{self._bar()}{self._curves()}{self._table()}</div>')

    def _bar(self) -> str:
        pace = self._pace
        if not pace.at and pace.loss is None:
            return ""
        of = f" of {pace.total_steps:,}" if pace.total_steps else ""
        said = [f"step {pace.at:,}{of}", f"epoch {pace.epoch:.1f}"]
        said += [] if pace.loss is None else [f"loss {pace.loss:.4g}"]
        if self._is_done:
            said.append(f"ended after {duration(pace.elapsed)}")
        else:
            said += [f"{speed(pace.tokens_per_second)} tokens/s", f"{duration(pace.remaining)} left"]
        share = f' max="{pace.total_steps}" value="{pace.at}"' if pace.total_steps else ""
        share = ' max="1" value="1"' if self._is_done and not pace.total_steps else share
        return f'<div><progress style="width:16rem"{share}></progress> {escape(" · ".join(said))}</div>'

    def _curves(self) -> str:
        if len(self._lines) < 2:
            return ""
        metrics = [self._first] if self._first else []
        return learning_curves([*self._lines, *self._valid], metrics=metrics).svg(640.0)

    def _table(self) -> str:
        if not self._valid:
            return ""
        known = [name for name in self._valid[-1].scores if name not in ("count", "characters", "unknown", "seconds")]
        names = sorted(known, key=lambda name: name != self._first)[:NAMES]
        rows: list[list[Any]] = []
        shown = self._valid[-ROWS:]
        if not any(line.best for line in shown):  # the best one stays in sight
            shown = [*[line for line in self._valid if line.best][-1:], *shown]
        for line in shown:
            scores = [line.scores.get(name, math.nan) for name in names]
            rows.append([line.step, duration(line.seconds), *scores, "best so far" if line.best else ""])
        return table_in_html(Table(["step", "time", *names, ""], rows))

    def _draw_if_due(self) -> None:
        if self._pace.now >= self._next:
            self._draw()

    def _draw(self) -> None:
        if self._update is None:
            self._update = self._show(self.html())
        else:
            self._update(self.html())
        self._next = self._pace.now + EVERY


def displayed(first: str) -> Callable[[str], object]:
    """Show HTML in the cell that runs; the function returned replaces it."""
    shown: Any = importlib.import_module("IPython.display")
    handle = shown.display(shown.HTML(first), display_id=True)
    return lambda html: handle.update(shown.HTML(html))
