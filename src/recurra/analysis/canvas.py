"""A PNG by matplotlib, drawn in pixels: the same places as in the SVG of the same picture."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from recurra.errors import ConfigError, DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINT = 0.72  # of a pixel of ours: matplotlib's letters are measured in points of 1/72 inch, and an inch is 100 pixels
LARGEST = 12_000  # pixels of a side


@contextlib.contextmanager
def drawn(
    path: str | os.PathLike[str], width: float, height: float, *, texts: Iterable[str], scale: float = 2.0
) -> Iterator[Axes]:
    """Axes of so many pixels, y downwards, to draw on; what was drawn is written to the file at the end.

    The file has `scale` times as many pixels, fewer where a side would have more than 12,000. `texts` are all words of
    the picture: for letters that the usual font lacks, other fonts of this machine are used; what none has is a box.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError(
            f"'{path}' would be drawn by matplotlib, which is not installed: run pip install 'recurra[plot]', or write "
            f"an .svg or .html file, which needs nothing."
        ) from error
    import matplotlib

    fonts = ["DejaVu Sans", *_fonts({letter for text in texts for letter in text})]
    with matplotlib.rc_context({"font.family": fonts, "text.parse_math": False}), _quiet():
        scale = min(scale, LARGEST / width, LARGEST / height)
        figure = Figure(figsize=(width / 100, height / 100), dpi=100 * scale, facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        axes.set_axis_off()
        axes.set_autoscale_on(False)
        yield axes
        try:
            FigureCanvasAgg(figure)
            figure.savefig(Path(path), format="png")
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror}.") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing is said about letters that no font has, or fonts that have no bold ones."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _fonts(letters: set[str]) -> list[str]:
    """Families of this machine that have the letters which DejaVu Sans lacks."""
    from matplotlib.font_manager import findfont, fontManager

    missing = {ord(letter) for letter in letters if letter.isprintable() and ord(letter) > 0x2FF}
    missing -= _letters_of(findfont("DejaVu Sans")) if missing else set()
    found = []
    for font in fontManager.ttflist if missing else ():
        if font.style == "normal" and "Last Resort" not in font.name and (more := missing & _letters_of(font.fname)):
            found.append(font.name)
            missing -= more
    return found


@cache
def _letters_of(path: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a font file that cannot be read has no letters for us
        return frozenset()
