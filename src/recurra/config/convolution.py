"""Settings of convolutions over time, and of the non-local block before them."""

from __future__ import annotations

from typing import Literal

from recurra.frozen import dataclass
from recurra.settings import SettingError, at_least, setting

NON_LOCAL_SETTING = (
    "a non-local block over what is read: none, its similarity (additive, bilinear, dot, scaled_dot, projected_dot), "
    "or a table with options, inner, and shape = [n] or [h, w] where the numbers of a step are a map"
)


@dataclass(frozen=True)
class ConvolutionModel:
    """Convolutions over time, of several widths side by side."""

    widths: list[int] = setting([1, 2, 3], "widths of the filters, in steps")
    filters: int = setting(512, "number of filters of each width")
    layers: int = setting(1, "layers")
    pooling: Literal["max", "mean"] = setting("max", "pooling over time")

    def __post_init__(self) -> None:
        at_least(1, "model.convolution", self, "filters", "layers")
        if not self.widths or min(self.widths) < 1:
            raise SettingError(
                f"model.convolution.widths must hold widths of at least 1, but is {self.widths}.",
                ("model", "convolution", "widths"),
            )


@dataclass(frozen=True)
class StepConvolutionModel:
    """Convolutions over time with an output at each step, of several widths side by side."""

    widths: list[int] = setting([1, 3, 5], "widths of the filters, in steps")
    filters: int = setting(128, "number of filters of each width")
    layers: int = setting(2, "layers")

    def __post_init__(self) -> None:
        self.of_one_vector()

    def of_one_vector(self) -> ConvolutionModel:
        """The same convolutions as settings of an encoder that pools them."""
        return ConvolutionModel(self.widths, self.filters, self.layers)
