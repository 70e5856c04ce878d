"""Learning curves of a run: the loss, the scores of validation, the learning rate, and what else was logged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from recurra.training.log import Line, TrainLine, ValidLine
from recurra.views.lines import Curve, Lines, Mark, Panel, Point, Style, drawable, smoothed

HIGH, LOW = 230.0, 154.0
"""Pixels of a panel that matters most, and of the others."""

RAW = 50
"""Of more losses than that, each is drawn beside their smoothed curve."""

_LOOKS: tuple[Style, ...] = ("solid", "one", "three", "four")


def learning_curves(lines: Sequence[Line], *, metrics: Sequence[str] = ()) -> Lines:
    """The loss, metrics (none named: the first of the validations), and what else was logged.

    >>> found = learning_curves([TrainLine(1, 0, 2.0, 0.1), TrainLine(2, 0, 1.0, 0.1), ValidLine(2, 0, {"f1": 0.5})])
    >>> [panel.title for panel in found.panels]
    ['loss', 'f1', 'learning rate']
    """
    train = sorted((line for line in lines if isinstance(line, TrainLine)), key=lambda line: line.step)
    valid = sorted((line for line in lines if isinstance(line, ValidLine)), key=lambda line: line.step)
    metrics = metrics or list(dict.fromkeys(name for line in valid for name in list(line.scores)[:1]))
    best = next((line for line in reversed(valid) if line.best), None)
    raw = [Point(line.step, drawable(line.loss)) for line in train]
    loss = [
        _curve("train", smoothed(raw)),
        _curve("valid", (Point(v.step, drawable(v.loss)) for v in valid), "solid", dots=True),
    ]
    if len(train) > RAW:
        loss = [_curve("train, raw", raw, "raw"), *loss]
    scores, marks = [], []
    for number, name in enumerate(metrics):
        points = [Point(line.step, drawable(line.scores.get(name, math.nan))) for line in valid]
        scores.append(_curve(f"{name}, valid", points, _LOOKS[number % len(_LOOKS)], dots=True))
        if best is not None and not math.isnan(best.scores.get(name, math.nan)):
            marks.append(Mark("best", best.step, best.scores[name]))
    rate = [_curve("", (Point(line.step, drawable(line.learning_rate)) for line in train), "three")]
    panels = [
        Panel("loss", loss, HIGH, log=True),
        Panel(", ".join(metrics), scores, HIGH, marks=marks),
        Panel("learning rate", rate, LOW),
    ]
    for name in dict.fromkeys(name for line in train for name in line.logged):
        told = [Point(line.step, drawable(line.logged.get(name, math.nan))) for line in train]
        panels.append(Panel(name.replace("_", " "), [_curve("", told, "four", dots=True)], LOW))
    return Lines(
        [panel for panel in map(_known, panels) if panel.curves], title="Learning curves", caption=_caption(panels)
    )


def losses_apart(lines: Sequence[Line], differs: Sequence[object]) -> str:
    """A sentence on why the training loss ends above the validation loss, where it does; else "".

    `differs` are clauses, such as 'dropout is on in training only'.

    >>> found = [TrainLine(1, 0, 2.0, 0.1), TrainLine(2, 0, 1.5, 0.1), ValidLine(2, 0, {}, 0.5)]
    >>> losses_apart(found, ["dropout is on in training only"])[:104]
    'The training loss ends above the validation loss (1.5 and 0.5): dropout is on in training only, and the '
    """
    valid = [line for line in lines if isinstance(line, ValidLine) and math.isfinite(line.loss)]
    if not valid:
        return ""
    last = max(valid, key=lambda line: line.step)
    train = sorted(
        (line for line in lines if isinstance(line, TrainLine) and line.step <= last.step), key=lambda line: line.step
    )
    curve = [point.y for point in smoothed([Point(line.step, drawable(line.loss)) for line in train])]
    ends = next((y for y in reversed(curve) if math.isfinite(y)), -math.inf)
    if ends <= last.loss:
        return ""
    clauses = [*map(str, differs), "the training curve averages over steps at which the weights were still worse"]
    reasons = ", and ".join(clauses) if len(clauses) < 3 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
    return (
        f"The training loss ends above the validation loss ({ends:.3g} and {last.loss:.3g}): {reasons}. This is usual "
        f"and no mistake."
    )


def _caption(panels: Iterable[Panel]) -> str:
    return "" if any(_known(panel).curves for panel in panels) else "nothing has been logged yet"


def _known(panel: Panel) -> Panel:
    """The panel without curves that have not a single number."""
    return panel._replace(curves=[curve for curve in panel.curves if not all(math.isnan(y) for y in curve.y)])


def _curve(name: str, points: Iterable[Point], look: Style = "one", *, dots: bool = False) -> Curve:
    points = list(points)
    return Curve(name, [point.y for point in points], [point.x for point in points], look, dots)
