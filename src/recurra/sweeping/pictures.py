"""Pictures of a sweep: how much each setting matters, and the settings of all trials beside their scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from recurra.sweeping.space import Choices, Label, Range, Varied
from recurra.views.axis import Axis, number_labels
from recurra.views.scene import Box, Circle, Path, Scene, SceneShape, width_of
from recurra.views.scene import Label as Text

if TYPE_CHECKING:
    from recurra.sweeping.results import Sweep, Trial

_EDGE, _ROW, _BAR, _SIZE = 8.0, 24.0, 14.0, 12.0  # pixels: around, a row, a bar, of letters
_TOP, _FOOT, _TALL = 46.0, 14.0, 300.0  # above, below and along the axes of settings
_LONGEST = 14  # letters of a choice beside its axis
_WEAKEST = 0.12  # of the line of the worst trial


def importance_scene(shares: Mapping[str, float], width: float) -> Scene:
    """A bar for each setting, with its share."""
    left = min(max((width_of(name, _SIZE) for name in shares), default=0.0) + 2 * _EDGE, width / 2)
    room = width - left - 60
    most = max(shares.values(), default=1.0) or 1.0
    shapes: list[SceneShape] = []
    for number, (name, share) in enumerate(shares.items()):
        y = _EDGE + number * _ROW
        long = room * share / most
        shapes += [
            Text(_clipped(name, left), left - _EDGE, y + 12, "end", _SIZE),
            Box(left, y, max(long, 1.0), _BAR, "one", title=f"{name}: {share:.3f}", round=2),
            Text(f"{share:.2f}", left + long + 6, y + 12, size=_SIZE),
        ]
    words = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return Scene(width, 2 * _EDGE + len(shares) * _ROW, shapes, f"Importance of the settings: {words}")


def parallel_scene(found: Sweep, width: float) -> Scene:
    """A line for each trial through an axis for each setting, the score at the right.

    The best trial is drawn last, in another colour. Pruned trials are dashed and have no score.
    """
    best = found.best
    scores = [each.score for each in found.complete if each.score is not None] or [0.0]
    names = short_names([varied.name for varied in found.space])
    count = len(found.space) + 1
    left, right = 40.0, 64.0
    places = [left + (width - left - right) * number / max(1, count - 1) for number in range(count)]
    axes = [_Across(varied, place) for varied, place in zip(found.space, places, strict=False)]
    score_axis = Axis.around(scores, _TALL)
    shapes: list[SceneShape] = []

    def line(trial: Trial) -> Path | None:
        points = [
            (axis.x, _TOP + _TALL - axis.up(trial.settings[axis.varied.name]))
            for axis in axes
            if axis.varied.name in trial.settings
        ]
        is_complete = trial.state == "complete" and trial.score is not None
        if is_complete:
            points.append((places[-1], _TOP + _TALL - score_axis.place(trial.score or 0.0)))
        if len(points) < 2:
            return None
        said = trial.state if trial.score is None or not is_complete else f"{found.metric} {trial.score:.4f}"
        title = f"trial {trial.number}: {said}; {', '.join(f'{k} = {v}' for k, v in trial.settings.items())}"
        if trial is best:
            return Path(points, "two", 3.0, title=title)
        if not is_complete:
            return Path(points, "faint", 1.0, (3, 4), strength=0.5, title=title)
        return Path(
            points, "one", 1.5, strength=_strength(trial.score or 0.0, scores, found.higher_is_better), title=title
        )

    shown = [each for each in found.trials if each.state in ("complete", "pruned") and each is not best]
    shown.sort(key=lambda each: (each.state == "complete", (each.score or 0.0) * (1 if found.higher_is_better else -1)))
    for trial in [*shown, *([] if best is None else [best])]:
        if (drawn := line(trial)) is not None:
            shapes.append(drawn)
    for number, axis in enumerate(axes):
        shapes += [_title(names[number], axis.x, number, width, count), *axis.shapes()]
    shapes += [_title(found.metric, places[-1], count - 1, width, count), *_score_axis(score_axis, places[-1])]
    if best is not None and best.score is not None:
        shapes.append(Circle(places[-1], _TOP + _TALL - score_axis.place(best.score), 4, "two", filled=True))
    varied = ", ".join(each.name for each in found.space)
    label = f"Settings and scores of {len(shown) + (best is not None)} trials, over {varied}"
    return Scene(width, _TOP + _TALL + _FOOT, shapes, label)


class _Across:
    """The axis of one setting at a place."""

    def __init__(self, varied: Varied, x: float) -> None:
        self.varied, self.x = varied, x
        values = varied.values
        self.axis: Axis | None = None
        if isinstance(values, Range):
            low, high = float(values.low), float(values.high)
            self.axis = Axis(low, high, _TALL, values.log)

    def up(self, label: Label) -> float:
        """How high a value stands."""
        values = self.varied.values
        if isinstance(values, Choices) or self.axis is None:
            labels = values.labels if isinstance(values, Choices) else []
            return _TALL * (labels.index(label) + 0.5) / len(labels)
        return self.axis.place(float(label))

    def shapes(self) -> Iterator[SceneShape]:
        yield _axis_line(self.x)
        values = self.varied.values
        if isinstance(values, Choices):
            for label in values.labels:
                yield from _tick(self.x, self.up(label), _clipped(str(label), _LONGEST * 8.0))
        elif self.axis is not None:
            inner = [value for value, _ in self.axis.ticks(6)]
            ends = [float(values.low), float(values.high)]
            far = [
                value for value in inner if all(abs(self.axis.place(value) - self.axis.place(end)) > 16 for end in ends)
            ]
            for value in [*ends, *far]:
                yield from _tick(self.x, self.axis.place(value), number_labels([value])[0])


def _score_axis(axis: Axis, x: float) -> Iterator[SceneShape]:
    yield _axis_line(x)
    for value, text in axis.ticks(8):
        yield from _tick(x, axis.place(value), text)


def _axis_line(x: float) -> Path:
    return Path([(x, _TOP), (x, _TOP + _TALL)], "ink", 1.0)


def _title(name: str, x: float, number: int, width: float, count: int) -> Text:
    """The name of an axis above it, inside of the picture; names stand in two rows, so that they have room."""
    name = _clipped(name, 2 * width / count)
    half = 0.55 * width_of(name, _SIZE)  # bold letters are wider
    return Text(name, min(max(x, half), width - half), 16 if number % 2 else 34, "middle", _SIZE, bold=True)


def _tick(x: float, up: float, text: str) -> Iterator[SceneShape]:
    y = _TOP + _TALL - up
    yield Path([(x - 3, y), (x + 3, y)], "ink", 1.0)
    yield Text(text, x + 6, y + 4, size=_SIZE - 1, colour="soft")


def _strength(score: float, scores: Sequence[float], higher_is_better: bool) -> float:
    """How strongly a trial is drawn: by its rank among all."""
    worse = sum(other < score if higher_is_better else other > score for other in scores)
    return _WEAKEST + (0.8 - _WEAKEST) * (worse / max(1, len(scores) - 1)) ** 2


def short_names(names: Sequence[str]) -> list[str]:
    """The last word of each name, with the one before where several end alike.

    >>> short_names(["model.hidden", "training.learning_rate", "encoder.layers", "decoder.layers"])
    ['hidden', 'learning_rate', 'encoder.layers', 'decoder.layers']
    """
    ends = [name.rpartition(".")[2] for name in names]
    return [
        end if ends.count(end) == 1 else ".".join(name.split(".")[-2:]) for name, end in zip(names, ends, strict=True)
    ]


def _clipped(text: str, pixels: float) -> str:
    most = max(4, math.floor(pixels / width_of("n", _SIZE)))
    return text if len(text) <= most else f"{text[: most - 1]}…"
