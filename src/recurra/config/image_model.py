"""Settings of what reads a picture."""

from __future__ import annotations

from typing import Literal

from recurra.frozen import dataclass
from recurra.settings import Part, SettingError, at_least, name_of, rates, setting


@dataclass(frozen=True)
class ImageModel:
    """A picture to a map of features, by convolutions."""

    widths: list[int] = setting([32, 64, 128, 256], "channels of each stage; each stage halves height and width")
    layers: int = setting(2, "residual convolutions per stage, after the downsampling one")
    norm: Literal["batch", "layer"] = setting("batch", "batch or layer normalisation; padding is left out")
    dropout: float = setting(0.1, "dropout on the features of the last stage")
    non_local: bool | Part = setting(
        False,
        "add a non-local block, self-attention over all places of the last stage: true, or its similarity (additive, "
        "bilinear, dot, scaled_dot, projected_dot), or a table with options",
    )
    positions: bool = setting(True, "add sinusoidal encodings of row and column, so that attention knows positions")
    rows: Part | None = setting(
        None, "a cell that reads each row of the feature map in both directions; none: no such layer"
    )
    hidden: int | None = setting(None, "features per place after that layer; none: the channels of the last stage")

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
                f"model.image.hidden = {self.hidden} has no effect, because model.image.rows is none. Set "
                "model.image.rows to a cell, or leave model.image.hidden out.",
                ("model", "image", "hidden"),
            )
        if self.rows is not None and self.output_size % 2:
            raise SettingError(
                f"model.image.rows = '{name_of(self.rows)}' is bidirectional, so the number of features must be "
                f"even, but is {self.output_size}: set model.image.hidden = {self.output_size + 1}.",
                ("model", "image", "rows"),
            )

    @property
    def output_size(self) -> int:
        """Features of a place of the map."""
        return self.hidden or self.widths[-1]
