"""What was measured of a cell, in words, and what may be done about it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from recurra.analysis.gradients import Saturation
from recurra.cells import AnyCell, Wrapper

STEADY = 0.05
"""A slope within ± this, in nats a step, is called stable: the half is lost, or twice as much there, in 14 steps."""

LEFT = 0.01
"""What is hardly anything any more."""

FEW = 10
"""Over fewer steps a slope says little."""

Verdict = Literal["vanishes", "explodes", "stable", "unknown"]


class Measured(NamedTuple):
    """What advice is made from."""

    cell: AnyCell
    slope: float  # of log ‖∂s_T / ∂s_t‖ against T − t, NaN where there are too few steps
    reach: int | None  # T − t at which a hundredth is left, where that was seen
    matrices: Mapping[str, float]  # λ₁ of each
    bound: float | None  # the same slope of the bound, where there is one
    gates: Sequence[Saturation]
    steps: int  # of the longest row
    clip: float | None = None  # the settings of training, where they are known
    cut: int | None = None  # after so many steps gradients are cut off
    state: str = "h"  # s: the field of the state that carries a change farthest


def verdict(slope: float) -> Verdict:
    """
    >>> verdict(-0.7), verdict(0.01), verdict(0.4), verdict(math.nan)
    ('vanishes', 'stable', 'explodes', 'unknown')
    """
    if math.isnan(slope):
        return "unknown"
    return "vanishes" if slope < -STEADY else "explodes" if slope > STEADY else "stable"


def in_words(found: Measured) -> str:
    """The verdict with its figures, one sentence."""
    called = verdict(found.slope)
    if called == "unknown":
        return "The examples are too short to measure how gradients change over time: give longer ones."
    carried = f"∂{found.state}_T/∂{found.state}_t"
    if found.slope == -math.inf:
        return f"{carried} vanishes: it is 0, for example because all relu units are inactive."
    factor = f"× {math.exp(min(found.slope, 700.0)):.3g} a step (slope {found.slope:+.3f})"
    if called == "stable":
        return f"{carried} is stable: {factor}."
    steps = abs(math.log(LEFT) / found.slope)
    if called == "explodes":
        return f"{carried} explodes: {factor}; it grows a hundredfold in about {steps:.0f} steps."
    far = f"{found.reach} steps back" if found.reach is not None else f"about {steps:.0f} steps back"
    return f"{carried} vanishes: {factor}; a hundredth is left {far}."


def advice(found: Measured) -> list[str]:
    """What follows from it, a sentence each; the first is about the bound, where the cell has one."""
    return [*_of_bound(found), *_of_verdict(found), *_of_gates(found), *_of_length(found)]


def _of_bound(found: Measured) -> list[str]:
    if found.bound is None or math.isnan(found.slope):
        return []
    if found.bound > STEADY and verdict(found.slope) != "explodes":
        return [
            "The bound Π max γ · λ₁ grows, but it is only an upper bound: λ₁γ > 1 is necessary for an explosion, "
            "not sufficient, and the measured gradient does not grow."
        ]
    if found.bound < -STEADY:
        return ["The bound Π max γ · λ₁ falls too, so gradients must vanish whatever the direction."]
    return []


def _of_verdict(found: Measured) -> list[str]:
    called = verdict(found.slope)
    if called == "vanishes":
        return [*_longer(found), *_cut(found, "costs less and loses little")]
    if called == "explodes":
        return [*_tamer(found), *_cut(found, "lets it grow less")]
    return []


def _longer(found: Measured) -> list[str]:
    options, name = options_of(found.cell), _bare(found.cell).name
    gates = {each.name: each for each in found.gates}
    said = []
    if "forget_bias" in options and "f" in gates and gates["f"].mean < 0.95:
        said.append(
            f"Forget gates let {gates['f'].mean:.0%} through per step on average. To remember for longer, start "
            f'them more open: model.cell = {{name = "{name}", forget_bias = 3.0}}.'
        )
    if "update_bias" in options and "z" in gates:
        bias = -2.0 if getattr(_bare(found.cell), "update", "take") == "take" else 2.0
        said.append(
            f"Update gates are {gates['z'].mean:.2f} on average. To remember for longer, start closer to keeping h: "
            f'model.cell = {{name = "{name}", update_bias = {bias}}}.'
        )
    if found.bound is not None:
        flat = next((each.low + each.high for each in found.gates if each.kind == "tanh"), 0.0)
        if flat > 0.2:
            said.append(f"{flat:.0%} of the units are saturated (φ' near 0): use smaller inputs or weights.")
        small = min(found.matrices.values(), default=1.0)
        if small < 1 and "state_init" in options:
            said.append(f'λ₁(U) is {small:.2f}: start with state_init = "orthogonal", where it is 1.')
        gated = "a cell with gates, model.cell = lstm or gru"
        other = gated if name == "orthogonal_elman" else f"{gated}, or with an orthogonal U, orthogonal_elman"
        said.append(f"To remember for longer, use {other}.")
    return said


def _tamer(found: Measured) -> list[str]:
    said = []
    if found.clip is None:
        said.append("Clip gradients: training.clip = 1.0.")
    else:
        said.append(f"Gradients are clipped at training.clip = {found.clip:g}: lower it where the loss jumps.")
    name, value = max(found.matrices.items(), key=lambda each: each[1], default=("", 0.0))
    if value > 1.05:
        near = (
            'state_init = "orthogonal" starts at 1; training.optimizer = {name = "adamw", weight_decay = 0.1} holds it'
        )
        if found.bound is not None:
            near = 'state_init = "orthogonal" starts at 1, and model.cell = orthogonal_elman stays there'
        said.append(f"λ₁({name}) is {value:.2f}: {near}.")
    return said


def _cut(found: Measured, why: str) -> list[str]:
    reach = found.reach or math.ceil(abs(math.log(LEFT) / found.slope))
    if found.cut is None or found.cut <= 2 * reach:
        return []
    return [f"Gradients are cut off after reading.steps = {found.cut} steps: reading.steps = {2 * reach} {why}."]


def _of_length(found: Measured) -> list[str]:
    if found.steps >= FEW or math.isnan(found.slope):
        return []
    return [f"The longest example has {found.steps} steps: longer examples would show more."]


def _of_gates(found: Measured) -> list[str]:
    said = []
    for each in found.gates:
        if each.kind == "gate" and each.low > 0.8:
            said.append(f"The gate {each.name} is shut: {each.low:.0%} of its values are below 0.1.")
        elif each.kind == "gate" and each.high > 0.8:
            said.append(f"The gate {each.name} is open: {each.high:.0%} of its values are above 0.9.")
    return said


def options_of(cell: AnyCell) -> list[str]:
    """The names of the options of a cell, of the one within where it is wrapped."""
    return list(inspect.signature(type(_bare(cell)).__init__).parameters)


def _bare(cell: AnyCell) -> AnyCell:
    return _bare(cell.cell) if isinstance(cell, Wrapper) else cell


def named(cell: AnyCell) -> str:
    """A cell's name, with those of the wrappers around it: 'lstm in weight_drop'."""
    return f"{named(cell.cell)} in {cell.name}" if isinstance(cell, Wrapper) else cell.name
