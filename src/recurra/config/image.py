"""Settings of pictures as data."""

from __future__ import annotations

from typing import Literal

from recurra.frozen import dataclass
from recurra.settings import SettingError, above_zero, at_least, setting


@dataclass(frozen=True)
class ImageData:
    """Where pictures come from, and what is made of them."""

    column: str | None = setting(
        None,
        'column with paths of PNG or JPEG files, relative to the data file, or with pixels; short: data.image = "…"',
    )
    strokes: str | None = setting(
        None, "column with pen strokes to draw as pictures: [[x, …], [y, …]] each, or lists of points"
    )
    channels: Literal[1, 3] = setting(1, "1: gray, 3: colours")
    max_height: int = setting(256, "maximum height in pixels; taller pictures are scaled down")
    max_width: int = setting(1024, "maximum width in pixels; wider pictures are scaled down")
    invert: Literal["auto"] | bool = setting(
        False, "invert pictures with dark ink on bright paper; auto: if the border is brighter than the whole picture"
    )
    stroke: float = setting(28.0, "length of the median stroke in pixels when strokes are drawn")
    thickness: float = setting(2.0, "thickness of the pen in pixels when strokes are drawn")

    @property
    def given(self) -> str | None:
        """The column that holds the pictures; None where there are none."""
        return self.column if self.strokes is None else self.strokes

    def __post_init__(self) -> None:
        if self.column is not None and self.strokes is not None:
            raise SettingError(
                "data.image and data.image.strokes cannot be used together: a picture comes from a file or "
                "from pen strokes.",
                ("data", "image", "strokes"),
            )
        at_least(16, "data.image", self, "max_height", "max_width")
        above_zero("data.image", self, "stroke", "thickness")
        smaller = min(self.max_height, self.max_width)
        if self.thickness > smaller / 2:
            raise SettingError(
                f"data.image.thickness = {self.thickness:g} is too thick for a picture of {smaller} pixels: use at "
                f"most {smaller // 2}.",
                ("data", "image", "thickness"),
            )
