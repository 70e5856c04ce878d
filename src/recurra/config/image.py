"""Settings of pictures as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recurra.settings import SettingError, above_zero, at_least, setting


@dataclass(frozen=True)
class ImageData:
    """Where pictures come from, and what is made of them."""

    column: str | None = setting(None, "column with paths of PNG or JPEG files, from the data's folder, or with pixels")
    strokes: str | None = setting(
        None, "column with pen strokes to be drawn: [[x, …], [y, …]] each, or lists of points"
    )
    channels: Literal[1, 3] = setting(1, "1: gray, 3: colours")
    max_height: int = setting(256, "rows; a higher picture is made smaller, its aspect kept")
    max_width: int = setting(1024, "columns; a wider picture is made smaller, its aspect kept")
    invert: Literal["auto"] | bool = setting(
        False, "make dark ink on bright paper bright; auto: where the border is brighter than the whole picture"
    )
    stroke: float = setting(28.0, "pixels of the median stroke when strokes are drawn")
    thickness: float = setting(2.0, "pixels of the pen when strokes are drawn")

    @property
    def given(self) -> str | None:
        """The column that holds the pictures; None where there are none."""
        return self.column if self.strokes is None else self.strokes

    def __post_init__(self) -> None:
        if self.column is not None and self.strokes is not None:
            raise SettingError(
                "data.image.column and data.image.strokes cannot be used together: a picture comes from a file or "
                "from pen strokes.",
                ("data", "image", "strokes"),
            )
        at_least(16, "data.image", self, "max_height", "max_width")
        above_zero("data.image", self, "stroke", "thickness")
        smaller = min(self.max_height, self.max_width)
        if self.thickness > smaller / 2:
            raise SettingError(
                f"data.image.thickness = {self.thickness:g} leaves no room in a picture of {smaller} pixels: "
                f"{smaller // 2} is the most.",
                ("data", "image", "thickness"),
            )
