"""New handwritten formulas out of old ones: side by side, one over the other, raised and lowered.

A recogniser that has seen some thousand formulas writes on from memory; one that has seen their parts in ever new
places must look. Le & Nakagawa (2017) have compositions of this kind; only ink of the training set is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Stroke = NDArray[np.float64]
"""(2, points): x and y, downwards."""

LONGEST = 48
"""Tokens of a composed formula, at most."""


class Formula(NamedTuple):
    """Ink whose median stroke is of size 1 and whose writing line is y = 0, and what it says."""

    strokes: list[Stroke]
    tokens: list[str]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, right, top, bottom."""
        return extent(self.strokes)


def extent(strokes: Sequence[Stroke]) -> tuple[float, float, float, float]:
    x, y = (np.concatenate([stroke[side] for stroke in strokes]) for side in range(2))
    return float(x.min()), float(x.max()), float(y.min()), float(y.max())


def formula(ink: Sequence[Sequence[Sequence[float]]], latex: str) -> Formula:
    """A formula as the data have it, in units of its own median stroke.

    >>> found = formula([[[0, 10], [0, 0]], [[5, 5], [-10, 10]]], "+")
    >>> found.box, found.tokens
    ((0.0, 0.6666666666666666, -0.6666666666666666, 0.6666666666666666), ['+'])
    """
    strokes = [np.array(stroke, np.float64) for stroke in ink]
    sizes = np.array([np.ptp(stroke, axis=1).max() for stroke in strokes])
    unit = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 1.0
    left = min(stroke[0].min() for stroke in strokes)
    # Most strokes stand on the line of writing or are centred on it: scripts and bars above and below balance.
    line = float(np.median([(stroke[1].min() + stroke[1].max()) / 2 for stroke in strokes]))
    return Formula([(stroke - [[left], [line]]) / unit for stroke in strokes], latex.split())


def moved(one: Formula, right: float = 0.0, down: float = 0.0, scale: float = 1.0) -> list[Stroke]:
    return [stroke * scale + [[right], [down]] for stroke in one.strokes]


def beside(a: Formula, b: Formula, draw: np.random.Generator) -> Formula | None:
    """a b"""
    gap = a.box[1] + draw.uniform(0.35, 0.9) - b.box[0]
    return Formula([*a.strokes, *moved(b, gap, draw.normal(0, 0.08))], [*a.tokens, *b.tokens])


def over(a: Formula, b: Formula, draw: np.random.Generator) -> Formula | None:
    r"""\frac { a } { b }"""
    widths = [each.box[1] - each.box[0] for each in (a, b)]
    half = max(*widths, 0.8) * draw.uniform(1.02, 1.25) / 2
    across = np.linspace(-half, half, 4)
    bar = np.stack([across, draw.normal(0, 0.03, 4) + across * draw.normal(0, 0.03)])
    above = moved(a, -(a.box[0] + a.box[1]) / 2 + draw.normal(0, 0.1), -a.box[3] - draw.uniform(0.15, 0.5))
    below = moved(b, -(b.box[0] + b.box[1]) / 2 + draw.normal(0, 0.1), -b.box[2] + draw.uniform(0.15, 0.5))
    strokes = [*above, bar, *below]
    left = extent(strokes)[0]
    shifted = [stroke - [[left], [0.0]] for stroke in strokes]
    return Formula(shifted, ["\\frac", "{", *a.tokens, "}", "{", *b.tokens, "}"])


def raised(a: Formula, b: Formula, draw: np.random.Generator) -> Formula | None:
    """a ^ { b }"""
    return _script(a, b, draw, "^")


def lowered(a: Formula, b: Formula, draw: np.random.Generator) -> Formula | None:
    """a _ { b }"""
    return _script(a, b, draw, "_")


def _script(a: Formula, b: Formula, draw: np.random.Generator, sign: str) -> Formula | None:
    last = a.tokens[-1]
    is_symbol = last.isalnum() or (sign == "^" and last == ")") or last in ("\\alpha", "\\beta", "\\theta", "\\pi")
    _, right, top, bottom = extent(a.strokes[-1:])
    if not is_symbol or right < a.box[1] - 0.05 or len(b.tokens) > 8:
        return None
    scale = draw.uniform(0.5, 0.75)
    height = (b.box[3] - b.box[2]) * scale
    edge = top + 0.25 * (bottom - top) if sign == "^" else bottom - 0.25 * (bottom - top)
    # The middle of the script lies beyond the edge of the symbol that carries it.
    middle = edge + (-1 if sign == "^" else 1) * (0.5 * height * draw.uniform(0.6, 1.0))
    down = middle - scale * (b.box[2] + b.box[3]) / 2
    script = moved(b, right + draw.uniform(0.05, 0.25) - scale * b.box[0], down, scale)
    return Formula([*a.strokes, *script], [*a.tokens, sign, "{", *b.tokens, "}"])


WAYS: list[tuple[float, Callable[[Formula, Formula, np.random.Generator], Formula | None]]] = [
    (0.45, beside),
    (0.25, over),
    (0.18, raised),
    (0.12, lowered),
]


def composed(formulas: Sequence[Formula], count: int, seed: int) -> list[Formula]:
    """So many new formulas; now and then one of them is a part of the next."""
    draw = np.random.default_rng(seed)
    chances = np.array([chance for chance, _ in WAYS])
    pool = [each for each in formulas if len(each.tokens) <= LONGEST // 2]
    found: list[Formula] = []
    while len(found) < count:
        a, b = (
            found[draw.integers(len(found))]
            if len(found) > 500 and draw.random() < 0.2
            else pool[draw.integers(len(pool))]
            for _ in range(2)
        )
        _, way = WAYS[draw.choice(len(WAYS), p=chances)]
        if len(a.tokens) + len(b.tokens) > LONGEST - 6:
            continue
        new = way(a, b, draw)
        if new is not None:
            found.append(new)
    return found
