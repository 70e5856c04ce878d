"""Features of where an attention has looked, around each place."""

from __future__ import annotations

from typing import Literal, final

from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.weights import check_size
from recurra.errors import ConfigError
from recurra.named import choose


@final
class Window(nn.Module):
    """A convolution over weights.

        a_0 = 0;  a_t = α_t, or Σ_{s ≤ t} α_s                of = "last" or "all"
        f_tj = b + Σ_i F_i a_{t-1,j+i}                       i = -r … r, width = 2r + 1; `filters` features
        f_trc = b + Σ_ij F_ij a_{t-1,r+i,c+j}                dimensions = 2: row r and column c of a grid

    With one dimension, what lies around a place of a grid are the places of its row.
    """

    def __init__(
        self, *, filters: int = 10, width: int = 7, of: Literal["last", "all"] = "last", dimensions: Literal[1, 2] = 1
    ) -> None:
        super().__init__()
        if check_size(width, "width") % 2 == 0:
            raise ConfigError(f"the width of a location term must be odd, so that it is centred, but is {width}.")
        if dimensions not in (1, 2):
            raise ConfigError(f"the dimensions of a location term must be 1 or 2, but are {dimensions!r}.")
        self.width, self.dimensions = width, dimensions
        self.of = choose(("last", "all"), of, "of")
        made = nn.Linear(width**dimensions, check_size(filters, "filters"))
        self.weight, self.bias = made.weight, made.bias  # F_-r … F_r side by side, or row after row; b

    def start(self, mask: Tensor, rows: int | None = None) -> Tensor:
        """(N, S): a_0."""
        return self.weight.new_zeros(len(mask) if rows is None else rows, mask.shape[1])

    def forward(self, past: Tensor, columns: int | None) -> Tensor:
        """(B, Q, S, filters) of what was seen by Q rows for each source, (B, Q, S)."""
        if self.dimensions == 2 and columns is None:
            raise ConfigError(
                "a location term with dimensions = 2 needs a grid, such as a picture, but this input is a "
                "sequence: set dimensions = 1."
            )
        if past.numel() == 0:
            return past.new_zeros(*past.shape, len(self.weight))
        reach = self.width // 2
        if columns is None or self.dimensions == 1:
            row = past if columns is None else past.unflatten(2, (-1, columns))
            around = functional.pad(row, (reach, reach)).unfold(-1, self.width, 1)
            found = functional.linear(around, self.weight, self.bias)
            return found if columns is None else found.flatten(2, 3)
        grid = past.flatten(0, 1).unflatten(1, (1, -1, columns))  # (N, 1, H, W)
        kernel = self.weight.view(-1, 1, self.width, self.width)
        found = functional.conv2d(grid, kernel, self.bias, padding=reach)
        return found.flatten(2).transpose(1, 2).unflatten(0, past.shape[:2])

    def moved(self, past: Tensor, weights: Tensor) -> Tensor:
        """(N, S): a_t from a_{t-1} and α_t."""
        return weights if self.of == "last" else past + weights

    def extra_repr(self) -> str:
        return f"{len(self.weight)} filters, width {self.width}, {self.dimensions}-d, of {self.of}"
