"""Which source token each target token looked at: attention as numbers, as text and in Pharaoh's format."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.text.visible import columns, shown, without_controls
from recurra.text.vocabulary import END
from recurra.views.prediction import Prediction

SHADES = " ░▒▓█"
# The colours of viridis among the 256 of a terminal, dark to bright: they can be told apart on black and on white.
_TERMINAL = (53, 54, 60, 24, 30, 36, 35, 77, 148, 226)


@dataclass(frozen=True, eq=False)
class Alignment:
    """What was read, what was written, and how much each written token looked at each read one: weights (T, S).

    Where there is a row or a column more than tokens, the last one is that of the end of the sequence.

    >>> Alignment(["a", "b"], ["x"], [[0.9, 0.1], [0.2, 0.8]]).target
    ('x', '</s>')
    """

    source: Sequence[str]
    target: Sequence[str]
    weights: ArrayLike
    title: str = ""

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, np.float64)
        rows, columns = weights.shape if weights.ndim == 2 else (-1, -1)
        if rows - len(self.target) not in (0, 1) or columns - len(self.source) not in (0, 1):
            raise DataError(
                f"an alignment of {len(self.target)} target and {len(self.source)} source tokens needs weights of "
                f"shape ({len(self.target)}, {len(self.source)}), or one more for the end, but found {weights.shape}."
            )
        if not weights.size:
            raise DataError("an alignment needs at least one source and one target token.")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise DataError(
                "the weights of an alignment are shares, but found a negative one or one that is no number."
            )
        object.__setattr__(self, "source", (*self.source, END)[:columns])
        object.__setattr__(self, "target", (*self.target, END)[:rows])
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(cls, answer: Prediction, title: str = "") -> Alignment:
        """That of an answer of sequence to sequence, with the tokens that were read; frames are numbered from 1.

        >>> detail = {"source_tokens": ["t", "ea"], "tokens": ["T"], "alignment": [[0.9, 0.1], [0.2, 0.8]]}
        >>> Alignment.of(Prediction("tea", "T", -0.1, 1, detail)).target
        ('T', '</s>')
        """
        weights = answer.alignment
        if weights is None:
            raise DataError(
                "the answer does not say where the model looked: ask for predict(..., detail=True), of a model with "
                "attention."
            )
        if answer.detail.get("columns") is not None:
            raise DataError(
                "places of a picture do not stand in a row as words do: `recurra explain RUN INPUT --out FILE.html`, "
                "or PictureAttention.of(answer, picture), shows where the model looked."
            )
        numbers = [str(number) for number in range(1, weights.shape[1] + 1)]
        return cls(answer.detail.get("source_tokens", numbers), answer.detail["tokens"], weights, title)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights (T, S), at most 1."""
        return np.minimum(np.asarray(self.weights), 1.0)


def pharaoh(alignment: Alignment, *, threshold: float | None = None) -> str:
    """Links as source-target, counted from 0, ends left out: of each target token the source token it looked at most.

    With a threshold, every source token with at least that weight.

    >>> pair = Alignment(["the", "house"], ["das", "Haus"], [[0.7, 0.3], [0.1, 0.9]])
    >>> pharaoh(pair), pharaoh(pair, threshold=0.3)
    ('0-0 1-1', '0-0 1-0 1-1')
    """
    sources, targets = (len(tokens) - (tokens[-1] == END) for tokens in (alignment.source, alignment.target))
    links = []
    for row, weights in enumerate(alignment.shares[:targets, :sources]):
        if threshold is not None:
            links += [f"{column}-{row}" for column in np.flatnonzero(weights >= threshold)]
        elif weights.any():  # a token that looked at the end alone is linked to nothing
            links.append(f"{weights.argmax()}-{row}")
    return " ".join(links)


def as_json(alignment: Alignment) -> dict[str, Any]:
    """For a program.

    >>> as_json(Alignment(["a"], ["x"], [[1.0]]))
    {'kind': 'alignment', 'source': ['a'], 'target': ['x'], 'weights': [[1.0]]}
    """
    return {
        "kind": "alignment",
        "source": list(alignment.source),
        "target": list(alignment.target),
        "weights": rounded(alignment.shares),
    }


def rounded(values: NDArray[np.float64], digits: int = 5) -> list[Any]:
    """Numbers as JSON lists: more digits would make a page wait for what no one sees."""
    found: list[Any] = np.round(values, digits).tolist()
    return found


def as_text(alignment: Alignment, *, colour: bool = False) -> str:
    """A heat map for the terminal: a row per target token, a column per source token, darker where it looked more.

    >>> print(as_text(Alignment("tea", ["T", "IY"], [[0.9, 0.1, 0.0], [0.0, 0.6, 0.4]])))
        t e a
      T ██
     IY   ▒▒▒▒
    """
    source, target = [list(map(_steady, labels(side))) for side in (alignment.source, alignment.target)]
    left = max(map(columns, target)) + 2
    widest = max(map(columns, source))
    cell = max(2, widest + 1) if widest <= 3 else 2
    if widest <= 3:
        lines = [" " * left + "".join(_padded(token, cell) for token in source)]
    else:  # words go down like stairs, each with a line to its column
        lines = [" " * left + "│ " * place + "┌ " + token for place, token in enumerate(source)]
    for token, weights in zip(target, alignment.shares, strict=True):
        cells = "".join(_cell(weight, cell, colour=colour) for weight in weights)
        lines.append(" " * (left - 1 - columns(token)) + token + " " + cells)
    if alignment.title:
        lines.insert(0, without_controls(alignment.title))
    return "\n".join(line.rstrip(" ") for line in lines)


def _cell(weight: float, width: int, *, colour: bool) -> str:
    if colour:
        return f"\033[48;5;{_TERMINAL[min(9, int(weight * 10))]}m{' ' * width}\033[0m"
    return SHADES[round(weight * (len(SHADES) - 1))] * width


def _padded(token: str, width: int) -> str:
    return token + " " * (width - columns(token))


def labels(tokens: Sequence[str]) -> list[str]:
    """Tokens as a picture names them; the end is a small black box."""
    return [shown(token) if token != END else "∎" for token in tokens]


def _steady(token: str) -> str:
    """A token between marks that keep its place in a line, where a terminal turns right-to-left words around."""
    turned = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in token)
    return f"\u200e{token}\u200e" if turned else token
