"""Settings of what reads a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recurra.settings import Part, SettingError, at_least, name_of, rates, setting


@dataclass(frozen=True)
class ImageModel:
    """A picture to a map of features, by convolutions."""

    widths: list[int] = setting(
        [32, 64, 128, 256], "channels of each stage; each halves the rows and the columns of the picture"
    )
    layers: int = setting(2, "residual convolutions of a stage, after the one that halves")
    norm: Literal["batch", "layer"] = setting(
        "batch", "batch or layer: each channel over the real places of a batch, or each place over its channels"
    )
    dropout: float = setting(0.1, "of the last stage's features")
    non_local: bool = setting(False, "each place of the last stage also sees all others")
    positions: bool = setting(True, "waves of the row and the column are added, so that attention knows where it looks")
    rows: Part | None = setting(None, "a cell: each row of the map is then read both ways; none: it stays as it is")
    hidden: int | None = setting(None, "features of a place after that; none: as many as the last stage has channels")

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1:
            raise SettingError(
                f"model.image.widths must be at least 1, for each of one stage or several, but is {self.widths}.",
                ("model", "image", "widths"),
            )
        at_least(0, "model.image", self, "layers")
        at_least(1, "model.image", self, "hidden")
        rates("model.image", self, "dropout")
        if self.hidden is not None and self.rows is None:
            raise SettingError(
                f"model.image.hidden = {self.hidden} is the size of what reads the rows of the map, but "
                f"model.image.rows is none: name a cell there, or leave hidden out.",
                ("model", "image", "hidden"),
            )
        if self.rows is not None and self.output_size % 2:
            raise SettingError(
                f"model.image.rows = '{name_of(self.rows)}' reads both ways, each of which gives half of a place's "
                f"{self.output_size} features: set model.image.hidden = {self.output_size + 1}.",
                ("model", "image", "rows"),
            )

    @property
    def output_size(self) -> int:
        """Features of a place of the map."""
        return self.hidden or self.widths[-1]
