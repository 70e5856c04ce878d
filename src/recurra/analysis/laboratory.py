"""The gradient laboratory: what a model's recurrent layers do with a few examples, measured."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from recurra.analysis.advice import LEFT, Measured, Verdict, advice, in_words, named, verdict
from recurra.analysis.gradients import Flow, Saturation, flows, forgotten, saturation
from recurra.analysis.jacobian import products
from recurra.analysis.matrices import recurrent_matrices
from recurra.analysis.watching import Seen, Watch
from recurra.errors import DataError
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent

STEPS = 50
"""So many steps back are looked at, if not told otherwise."""

ROWS, NUMBERS = 8, 1024
"""Jacobians are found for so many rows at most, the longest, with so many numbers in their states or else for one."""


@dataclasses.dataclass(frozen=True)
class Layer:
    """What was measured of one cell in one direction. Curves are by T − t = 0, 1, … steps before the last one read."""

    title: str
    cell: str
    units: int
    steps: int  # of the longest row
    state: str  # the field of the state that carries a change farthest, h or c: the verdict is of it
    verdict: Verdict
    slope: float
    words: str
    advice: list[str]
    matrices: dict[str, float]  # λ₁ of each
    gates: list[Saturation]
    jacobian: dict[str, list[float]]  # median over rows, natural logarithms: largest, smallest, norm, bound, memory, …
    forget: dict[str, list[float]]  # mean and largest over the units of Π f; empty without forget gates
    gradient: dict[str, list[float]]  # mean over rows of ‖∂L/∂h_t‖, …; empty without a loss
    weights: dict[str, list[float]]  # ‖∇_{W(k)}‖ of each parameter, by the k-th step read

    def json(self) -> dict[str, Any]:
        """All of it as plain values, None for what is not known; the curves of the Jacobian not as logarithms."""
        table = dataclasses.asdict(self)
        curves = {name: [_plain(math.exp(min(v, 709.0))) for v in values] for name, values in self.jacobian.items()}
        parts = {
            name: {key: [_plain(value) for value in values] for key, values in getattr(self, name).items()}
            for name in ("forget", "gradient", "weights")
        }
        gates = [each._asdict() for each in self.gates]
        return {**table, "slope": _plain(self.slope), "gates": gates, "jacobian": curves, **parts}


@dataclasses.dataclass(frozen=True)
class Laboratory:
    """What was found in a model."""

    title: str
    examples: int
    loss: float | None  # None where examples have no answers
    layers: list[Layer]

    def json(self) -> dict[str, Any]:
        """As `recurra gradients --json` prints it."""
        loss = None if self.loss is None else _plain(self.loss)
        layers = [layer.json() for layer in self.layers]
        return {"title": self.title, "examples": self.examples, "loss": loss, "layers": layers}


def _plain(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def look(rnn: Recurrent, x: Padded, *, loss: Any = None, steps: int = STEPS, title: str = "a stack") -> Laboratory:
    """What a stack does with a batch; `loss` is a function of its outputs, (B, T, H) to a number.

    >>> torch.manual_seed(1)                                                      # doctest: +ELLIPSIS
    <torch...>
    >>> [layer] = look(Recurrent("elman", 2, 8), Padded.full(torch.zeros(1, 20, 2))).layers
    >>> layer.verdict                                  # U starts orthogonal, and tanh is steep at 0
    'stable'
    """
    watch = Watch(rnn)
    outputs, _ = watch.model(Padded(x.values.double(), x.lengths))
    return looked(watch, None if loss is None else loss(outputs.values), len(x.lengths), steps=steps, title=title)


def looked(
    watch: Watch,
    loss: Tensor | None,
    examples: int,
    *,
    steps: int = STEPS,
    title: str = "",
    clip: float | None = None,
    cut: int | None = None,
) -> Laboratory:
    """What is there to tell of a model that was watched."""
    seen = watch.seen()
    for each in seen:
        for number, step in enumerate(each.steps, 1):
            if not all(bool(field.isfinite().all()) for field in step.after):
                raise DataError(
                    f"{each.title}: the states after step {number} are infinite or NaN, so nothing can be "
                    "measured: the model has diverged. Use an earlier checkpoint, or train with a lower "
                    "training.learning_rate or training.clip."
                )
    found: list[Flow | None] = [None] * len(seen)
    if seen and loss is not None and loss.requires_grad:
        found = [*flows(loss, seen)]
    layers = [_layer(each, flow, steps, clip, cut) for each, flow in zip(seen, found, strict=True)]
    return Laboratory(title, examples, None if loss is None else float(loss.detach()), layers)


def _layer(seen: Seen, flow: Flow | None, steps: int, clip: float | None, cut: int | None) -> Layer:
    size = sum(field.shape[1] for field in seen.steps[0].before)
    with torch.no_grad():
        found = products(seen.rows(max(1, min(ROWS, NUMBERS // size))), steps=steps)
        left, matrices, gates = forgotten(seen), recurrent_matrices(seen), saturation(seen)
    h = next(iter(found.largest))
    curves = {"largest": found.largest[h], "smallest": found.smallest[h], "norm": found.norm[h], "inputs": found.inputs}
    curves |= {"memory": found.largest["c"]} if "c" in found.largest and h != "c" else {}
    curves |= {} if found.bound is None else {"bound": found.bound}
    typical = {name: values.nanmedian(0).values.tolist() for name, values in curves.items()}
    slopes = {name: _slope(values) for name, values in found.largest.items()}
    # What one field loses another may carry: h of an LSTM is written anew at each step, and c goes on.
    carries = max(slopes, key=lambda name: -math.inf if math.isnan(slopes[name]) else slopes[name])
    slope, farthest = slopes[carries], found.largest[carries].nanmedian(0).values.tolist()
    measured = Measured(
        seen.cell,
        slope,
        next((lag for lag, value in enumerate(farthest) if value < math.log(LEFT)), None),
        matrices,
        None if found.bound is None else _slope(found.bound),
        gates,
        int(seen.lengths.max()),
        clip,
        cut,
        carries,
    )
    forget = {}
    if left is not None:
        forget = {"mean": left.mean(2).nanmean(0), "largest": left.amax(2).nanmean(0)}
    gradient = {} if flow is None else {name: values.nanmean(0) for name, values in flow.norms().items()}
    return Layer(
        title=seen.title,
        cell=named(seen.cell),
        units=seen.steps[0].before[0].shape[1],
        steps=int(seen.lengths.max()),
        state=carries,
        verdict=verdict(slope),
        slope=slope,
        words=in_words(measured),
        advice=[*_held(seen), *advice(measured)],
        matrices=matrices,
        gates=gates,
        jacobian=typical,
        forget={name: values[:steps].tolist() for name, values in forget.items()},
        gradient={name: values[:steps].tolist() for name, values in gradient.items()},
        weights={} if flow is None else {name: values.tolist() for name, values in flow.weight_norms().items()},
    )


def _held(seen: Seen) -> list[str]:
    """What the Jacobians of a cell leave out, in a sentence."""
    if not seen.is_looped:
        return []
    whole = "‖∂L/∂h_t‖ includes them"
    return [f"The Jacobians are of the cell alone, without the ways through attention and what is fed back; {whole}."]


def _slope(logs: Tensor) -> float:
    """The slope of log norms against T − t ≥ 1, the same for all rows, each from a height of its own.

    NaN where no row has three of them, −∞ where most have become 0.
    """
    rows = [row[~row.isnan()][1:] for row in logs]
    long = [row for row in rows if len(row) >= 3]
    finite = [row for row in long if not row.isinf().any()]
    if 2 * len(finite) < len(long):
        return -math.inf
    over = under = 0.0
    for row in finite:
        apart = torch.arange(len(row), dtype=row.dtype) - (len(row) - 1) / 2
        over, under = over + float(apart @ row), under + float(apart @ apart)
    return over / under if finite else math.nan
