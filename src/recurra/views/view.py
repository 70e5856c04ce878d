"""View: something to see, as a value. Terminal, JSON, pictures and pages are all made of the same value."""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.text.visible import shown, without_controls
from recurra.text.vocabulary import END
from recurra.views.page import in_notebook, page, table_in_html, write_whole
from recurra.views.png import as_png
from recurra.views.scene import Scene
from recurra.views.svg import as_svg
from recurra.views.table import Table

WIDTH = 900.0
"""Pixels of a picture, if not told otherwise."""

PAGE, PHONE = 864.0, 360.0
"""Pixels of a picture on a page, and on a page that is read on a phone."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class View(ABC):
    """A visualisation. Each kind is a dataclass whose fields contain everything that is drawn.

    `title` is its heading on a page, `caption` stands in the picture, `about` tells a reader of a page how to read it.
    `numbers` are further values for programs: json() has them, and nothing is drawn of them.
    """

    kind: ClassVar[str]
    """What chooses the drawer, here and on the page of `recurra serve`."""

    script: ClassVar[str] = ""
    """What a page runs to bring the view to life; without it the page shows the whole view."""

    title: str = ""
    caption: str = ""
    about: str = ""
    numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """A kind of view that checks its own fields calls this first."""
        taken = sorted({"kind", *_names(type(self))} & {*self.numbers})
        if taken:
            raise DataError(
                f"'{taken[0]}' cannot be the name of numbers of a view, because {type(self).__name__} has a field "
                "of that name: choose another name."
            )

    @abstractmethod
    def text(self) -> str:
        """For the terminal."""

    @abstractmethod
    def scene(self, width: float = WIDTH) -> Scene:
        """The picture, about so many pixels wide."""

    def tables(self) -> dict[str, Table]:
        """The numbers as tables, by what they are called."""
        return {}

    def figure(self) -> str:
        """What a page shows: the picture, unless a page can show more."""
        return f'<figure style="overflow:auto">{self.svg(PAGE)}</figure>'

    def json(self) -> dict[str, Any]:
        """The value as JSON has it: from_json makes the same view of it."""
        own = {name: plain(getattr(self, name)) for name in _names(type(self))}
        return {"kind": self.kind, **own, **{name: plain(value) for name, value in self.numbers.items()}}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""
        names = _names(cls)
        numbers = {name: value for name, value in given.items() if name not in names and name != "kind"}
        return cls(**{name: given[name] for name in names if name in given}, numbers=numbers)

    @final
    def svg(self, width: float = WIDTH) -> str:
        """The picture as SVG, for light and dark screens."""
        return as_svg(self.scene(width))

    @final
    def png(self, path: str | Path, width: float = WIDTH) -> None:
        """Write the picture as a PNG with twice as many pixels; needs matplotlib."""
        as_png(path, self.scene(width))

    @final
    def html(self) -> str:
        """A piece of a page: how to read the picture, the picture, and its numbers in tables."""
        pieces = [
            f'<p class="soft">{escape(self.about)}</p>' if self.about else "",
            self.figure(),
            *(
                f"<details><summary>{escape(name)}</summary>{table_in_html(table)}</details>"
                for name, table in self.tables().items()
            ),
        ]
        return "\n".join(filter(None, pieces))

    @final
    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return in_notebook(self.html())

    @final
    def page(self) -> str:
        """A whole page that works offline."""
        title = without_controls(self.title)
        return page(title, [f"<h1>{escape(title)}</h1>", self.html()], script=self.script)

    @final
    def write(self, path: str | Path, width: float = WIDTH) -> Path:
        """Write a page (.html) or a picture (.svg, .png)."""
        path = Path(path)
        if path.suffix not in (".html", ".svg", ".png"):
            raise ConfigError(f"{path}: the file must end in .html, .svg or .png.")
        if path.suffix == ".png":
            self.png(path, width)
        else:
            write_whole(path, self.svg(width) if path.suffix == ".svg" else self.page())
        return path


def _names(kind: type[View]) -> list[str]:
    """The fields of a kind of view, title first; each is a key of its JSON."""
    return [field.name for field in dataclasses.fields(kind) if field.name != "numbers"]


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays are lists, named tuples are objects, what is no number is null.

    >>> plain({"a": np.array([1.5, math.nan]), "b": (1, "x")})
    {'a': [1.5, None], 'b': [1, 'x']}
    """
    if isinstance(value, View):
        return value.json()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def rounded(values: Any, digits: int = 5) -> NDArray[np.float64]:
    """Numbers as a view holds them: more digits would make a page wait for what nobody sees."""
    found = np.asarray(np.round(np.asarray(values, np.float64), digits), np.float64)
    return found + np.float64(0.0)  # which makes 0.0 of -0.0


def labels(tokens: Iterable[str]) -> list[str]:
    """Tokens as a picture names them; the end of a sequence is a small black box.

    >>> labels(["a b", "</s>"])
    ['a␣b', '∎']
    """
    return [shown(token) if token != END else "∎" for token in tokens]


def minus(text: str) -> str:
    """A number with a real minus."""
    return text.replace("-", "−")


def minuses(text: str) -> str:
    """A sentence for a picture or a page, whose numbers have a real minus; hyphens stay. A terminal has '-' alone.

    >>> minuses("log-odds -1.50, from 2 to -.5")
    'log-odds −1.50, from 2 to −.5'
    """
    return re.sub(r"(?<!\S)-(?=[\d.])", "−", text)


def captioned(caption: str, *lines: str) -> str:
    """Lines for the terminal under a caption, where there is one."""
    return "\n".join([*([without_controls(caption)] if caption else []), *lines])
