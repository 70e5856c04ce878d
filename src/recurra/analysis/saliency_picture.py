"""Saliency as a picture: coloured words for one answer or a few, a map of answers by tokens for many."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from html import escape

import numpy as np

from recurra.analysis import coloured_words, scene
from recurra.analysis.alignment import labels
from recurra.analysis.coloured_words import ColouredWords
from recurra.analysis.page import page, table_in_html
from recurra.analysis.saliency import NAMES, TOLERANCE, Saliency
from recurra.analysis.scene import Box, Cells, Path, Scene, Shape, Words, width_of
from recurra.text.visible import without_controls
from recurra.views.table import Table

FEW = 3
"""So many answers are shown as coloured words, more as a map."""

_EDGE, _LINE, _CELL, _SMALLEST = 12.0, 24.0, 28.0, 12.0  # pixels
_SLANT = 0.7072
_WEAKEST = 0.03
"""Of the strongest: less cannot be seen, and is not said where it is pointed at."""


def coloured(found: Saliency) -> list[ColouredWords]:
    """Each answer as coloured words.

    >>> one = Saliency(["not", "bad"], ["praise"], [[1.5, -0.5]], [2.0], [1.0], "integrated", "log odds")
    >>> coloured(one)[0].note
    'log odds 2.00, without the input 1.00'
    """
    values, whole, nothing = (np.asarray(each) for each in (found.values, found.whole, found.nothing))
    rows = []
    for number, answer in enumerate(found.answers):
        note = f"{found.unit} {whole[number]:.2f}, without the input {nothing[number]:.2f}".replace("-", "−")
        lack = found.missing[number]
        if found.method == "integrated" and lack > TOLERANCE:
            note += f"; the colours stand for all of the difference but {lack:.0%}"
        said = [f"{token}: {value:+.3f}" for token, value in zip(labels(found.tokens), values[number], strict=True)]
        title = f"{without_controls(answer)}: {NAMES[found.method]}"
        rows.append(ColouredWords(title, found.tokens, found.shares[number], said, note))
    return rows


def _scene(found: Saliency, width: float) -> Scene:
    """Rows are answers, columns are tokens; the strongest of each row has the full colour."""
    tokens, answers = labels(found.tokens), labels(found.answers)
    values, whole, shares = np.asarray(found.values), np.asarray(found.whole), found.shares
    side = math.ceil(max(map(width_of, answers))) + 12
    title = without_controls(found.title)
    left = _EDGE + side
    cell = min(_CELL, max(_SMALLEST, (width - left - 64) // len(tokens)))  # of whole pixels, or gaps are seen
    size = min(13.0, cell - 1)
    longest = max(width_of(token, size) for token in tokens)
    slanted = longest > cell - 2
    rise = math.ceil(longest * _SLANT) + 12 if slanted else _LINE
    head = f"{NAMES[found.method]}: what adds to the {found.unit} of each answer, or takes away"
    shapes: list[Shape] = [Words(title, _EDGE, _EDGE + 12, bold=True)] if title else []
    top = _EDGE + (_LINE if title else 0)
    shapes.append(Words(head, _EDGE, top + 11, size=11, colour="soft"))
    top += _LINE + rise
    ends = [
        left + (n + 0.5) * cell + width_of(token, size) * (_SLANT if slanted else 0.5) for n, token in enumerate(tokens)
    ]
    for number, token in enumerate(tokens):
        x = left + (number + 0.5 - 0.1 * slanted) * cell
        shapes.append(Words(token, x, top - 6, "start" if slanted else "middle", size, slanted=slanted))
    edge = left + cell * len(tokens)
    shapes.append(Words(found.unit, edge + 54, top - 6, "end", size=11, colour="soft"))
    shapes.append(Cells(left, top, cell, cell, shares))
    for number, answer in enumerate(answers):
        y = top + (number + 0.5) * cell
        shapes.append(Words(answer, left - 8, y + size / 3, "end", size))
        shapes.append(
            Words(f"{whole[number]:.2f}".replace("-", "−"), edge + 54, y + 4, "end", min(11.0, size), colour="soft")
        )
    bottom = top + cell * len(answers)
    shapes += [Path([(x, top), (x, bottom)], "paper", 1) for x in (left + n * cell for n in range(1, len(tokens)))]
    shapes += [Path([(left, y), (edge, y)], "paper", 1) for y in (top + n * cell for n in range(1, len(answers)))]
    for row, column in np.argwhere(np.abs(shares) >= _WEAKEST):
        said = f"{answers[row]} ← {tokens[column]}: {values[row, column]:+.3f}"
        shapes.append(Box(left + column * cell, top + row * cell, cell, cell, strength=0.0, title=said, round=0))
    if found.left_out:
        said = f"The first {len(answers)} of {len(answers) + found.left_out} answers are shown."
        shapes.append(Words(said, _EDGE, bottom + 18, size=11, colour="soft"))
        bottom += _LINE
    across = max(edge + 54, *ends, _EDGE + width_of(title), _EDGE + width_of(head, 11)) + _EDGE
    return Scene(across, bottom + _EDGE, shapes, f"{head}: {' '.join(tokens)}; {' '.join(answers)}")


def as_svg(*several: Saliency, width: float = 900) -> str:
    """Coloured words where there are few answers; otherwise a map, of the first alone."""
    if len(several[0].answers) <= FEW:
        return coloured_words.as_svg(*(row for found in several for row in coloured(found)), width=width)
    return scene.as_svg(_scene(several[0], width))


def in_html(*several: Saliency, others: Sequence[ColouredWords] = ()) -> str:
    """The pictures with what they mean, and all numbers as tables."""
    pieces = [
        '<p class="soft">Blue speaks for the answer, orange against it. Integrated gradients follow the input from '
        "nothing, vectors of zeros, to what it is, and add up to all that the input changed; gradient × input asks "
        "only which way things go from here. Point at a word or a cell for its number.</p>"
    ]
    if len(several[0].answers) <= FEW:
        pieces.append(coloured_words.in_html(*others, *(row for found in several for row in coloured(found))))
    else:
        first, *rest = [f'<figure style="overflow:auto">{scene.as_svg(_scene(each, 860))}</figure>' for each in several]
        pieces.append(first)
        for found, figure in zip(several[1:], rest, strict=True):
            pieces.append(f"<details><summary>{escape(NAMES[found.method])}</summary>{figure}</details>")
    for found in several:
        rows = [
            [answer, f"{total:.3f}", *(f"{value:+.3f}" for value in row)]
            for answer, total, row in zip(
                labels(found.answers), np.asarray(found.whole), np.asarray(found.values), strict=True
            )
        ]
        table = table_in_html(Table(["", found.unit, *labels(found.tokens)], rows))
        pieces.append(f"<details><summary>{escape(NAMES[found.method])} as numbers</summary>{table}</details>")
    return "\n".join(pieces)


def as_html(*several: Saliency, title: str = "What mattered") -> str:
    """One page that fetches nothing."""
    return page(title, [f"<h1>{escape(without_controls(title))}</h1>", in_html(*several)])


def as_png(path: str | os.PathLike[str], *several: Saliency, width: float = 900) -> None:
    """Write the picture that as_svg draws as a PNG; needs matplotlib."""
    if len(several[0].answers) <= FEW:
        coloured_words.as_png(path, *(row for found in several for row in coloured(found)), width=width)
    else:
        scene.as_png(path, _scene(several[0], width))
