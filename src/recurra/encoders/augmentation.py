"""Small random changes of pictures and of series in training, so that a model learns what does not matter.

Everything is drawn by torch on the device of the values: the seed of a step decides. What is drawn for one row says
nothing of the others, sizes and lengths stay as they are, and padding stays 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from recurra.config import Augmentation
from recurra.padding import Grid, Padded, beside

BETWEEN = 32
"""Pixels from one place that is warped by chance to the next; what lies between goes with them."""


class Moves(NamedTuple):
    """How each picture of a batch is moved, around its own middle: slanted, turned, made larger, shifted."""

    shift: Tensor  # (B, 2) pixels down and to the right
    scale: Tensor  # (B,) times as large
    angle: Tensor  # (B,) radians, from the right downwards
    shear: Tensor  # (B,) pixels to the right for each pixel down

    @classmethod
    def none(cls, rows: int) -> Moves:
        """All stay where they are."""
        return cls(torch.zeros(rows, 2), torch.ones(rows), torch.zeros(rows), torch.zeros(rows))


@torch.no_grad()
def augmented_pictures(pictures: Grid, how: Augmentation) -> Grid:
    """The pictures, each changed in its own way; pixels are 0 to 1, and what comes in from outside is 0.

    Of a picture with an empty border, such as a drawing, nothing leaves it: what it shows stays whole.
    """
    changed = pictures
    if how.ink:
        changed = thickened(changed, _within(how.ink, pictures.values), most=how.ink)
    if how.warp:
        changed = warped(changed, how.warp)
    if how.shift or how.scale or how.rotate or how.shear:
        sides = beside(pictures.sizes, pictures.values).float()
        moves = Moves(
            shift=torch.stack([_within(how.shift, pictures.values) for _ in range(2)], 1) * sides,
            scale=1 + _within(how.scale, pictures.values),
            angle=torch.deg2rad(_within(how.rotate, pictures.values)),
            shear=_within(how.shear, pictures.values),
        )
        changed = moved(changed, kept_inside(changed, moves))
    if how.noise:
        changed = Grid(changed.values + how.noise * torch.randn_like(changed.values), changed.sizes).zeroed()
    return changed


@torch.no_grad()
def augmented_series(series: Padded, how: Augmentation) -> Padded:
    """The series (B, T, ...), each changed in its own way; where it was moved away or is masked stands 0.

    >>> from recurra.padding import pad
    >>> masked = augmented_series(pad([torch.ones(10, 1)]), Augmentation(mask=0.5))
    >>> bool(masked.values.sum() >= 5), masked.lengths.tolist()
    (True, [10])
    """
    values, lengths = series.values, beside(series.lengths, series.values)
    apart = (...,) + (None,) * (values.dim() - 1)
    if how.scale:
        values = values * (1 + _within(how.scale, values)).to(values.dtype)[apart]
    if how.shift:
        values = _later(values, (_within(how.shift, values) * lengths).round().long(), lengths)
    if how.noise:
        values = values + how.noise * torch.randn_like(values)
    if how.mask:
        longest = torch.rand(len(values), device=values.device) * how.mask
        steps = (longest * lengths).floor().long()
        first = (torch.rand(len(values), device=values.device) * (lengths - steps + 1)).floor().long()
        place = torch.arange(values.shape[1], device=values.device)
        masked = (place >= first.unsqueeze(1)) & (place < (first + steps).unsqueeze(1))
        values = values.masked_fill(masked[(...,) + (None,) * (values.dim() - 2)], 0)
    return series if values is series.values else Padded(values, series.lengths).zeroed()


def kept_inside(pictures: Grid, moves: Moves) -> Moves:
    """The moves, with less scale and shift where ink would leave a picture that has none on its border.

    With o = R · S · (p - m) of all ink p, and room for h = (size - 1) / 2 on each side of the middle:

        scale ≤ 2h / (max o - min o),      -h - scale · min o ≤ t ≤ h - scale · max o
    """
    values = pictures.zeroed().values.amax(1)  # (B, H, W)
    ink, device = values > 0, values.device
    sizes = beside(pictures.sizes, values)
    moves = Moves(*(move.to(device, torch.float32) for move in moves))
    middles = (sizes.to(torch.float32) - 1) / 2
    row, column = (torch.arange(side, device=device) for side in values.shape[1:])
    last_row, last_column = (sizes - 1).unbind(1)
    is_edge_row = (row == 0) | (row == last_row.unsqueeze(1))
    is_edge_column = (column == 0) | (column == last_column.unsqueeze(1))
    on_border = (ink & (is_edge_row.unsqueeze(2) | is_edge_column.unsqueeze(1))).flatten(1).any(1)
    is_free = on_border | ~ink.flatten(1).any(1)
    scale, shift = moves.scale, []
    ends = []
    for o in _turned(row, column, middles, moves):  # down, then to the right
        far = torch.finfo(torch.float32).max
        ends.append((o.masked_fill(~ink, far).amin((1, 2)), o.masked_fill(~ink, -far).amax((1, 2))))
    for (low, high), half in zip(ends, middles.unbind(1), strict=True):
        scale = torch.minimum(scale, torch.where(is_free, scale, 2 * half / (high - low).clamp_min(1e-6)))
    for (low, high), half, t in zip(ends, middles.unbind(1), moves.shift.unbind(1), strict=True):
        inside = torch.minimum(torch.maximum(t, -half - scale * low), half - scale * high)
        shift.append(torch.where(is_free, t, inside))
    return moves._replace(scale=scale, shift=torch.stack(shift, 1))


def _turned(row: Tensor, column: Tensor, middles: Tensor, moves: Moves) -> tuple[Tensor, Tensor]:
    """R · S · (p - m) of every pixel p, (B, H, W) down and to the right."""
    angle, shear = moves.angle[:, None, None], moves.shear[:, None, None]
    y = row.unsqueeze(1) - middles[:, 0, None, None]
    x = column - middles[:, 1, None, None] + shear * y
    return x * angle.sin() + y * angle.cos(), x * angle.cos() - y * angle.sin()


def moved(pictures: Grid, moves: Moves) -> Grid:
    """The pictures moved, in sizes that stay: what leaves a picture is lost.

        q = m + t + scale · R · S · (p - m),   R turns by the angle, S adds shear · y to x,   m is the middle

    A pixel at q is taken from p, between pixels by their weighted mean.
    """
    values = pictures.zeroed().values
    device, (height, width) = values.device, values.shape[2:]
    down, right = (moves.shift.to(device, torch.float32)[:, side, None, None] for side in range(2))
    scale, angle, shear = (move.to(device, torch.float32)[:, None, None] for move in moves[1:])
    middle_y, middle_x = ((beside(pictures.sizes, values).float() - 1) / 2)[:, :, None, None].unbind(1)
    y = torch.arange(height, device=device).unsqueeze(1) - middle_y - down
    x = torch.arange(width, device=device) - middle_x - right
    x, y = (x * angle.cos() + y * angle.sin()) / scale, (y * angle.cos() - x * angle.sin()) / scale
    return _taken(values, x - shear * y + middle_x, y + middle_y, pictures.sizes)


def _taken(values: Tensor, x: Tensor, y: Tensor, sizes: Tensor) -> Grid:
    """Pixels from places (x, y), (B, H, W) each, between pixels by their weighted mean; 0 from outside."""
    height, width = values.shape[2:]
    # grid_sample counts from -1 to 1, from edge to edge.
    places = torch.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], dim=-1).to(values.dtype)
    found = F.grid_sample(values, places, mode="bilinear", padding_mode="zeros", align_corners=False)
    return Grid(found, sizes).zeroed()


def warped(pictures: Grid, most: float) -> Grid:
    """The pictures, each place of which is moved by up to `most` pixels either way, near ones alike.

        a pixel at q is taken from q + r(q) · u(q),   u between random numbers every 32 pixels, |u| ≤ most
                                                      r from 0 on the border to 1 inside, so that nothing leaves

    Writing differs so from hand to hand (Simard et al. 2003).
    """
    values = pictures.zeroed().values
    device, (height, width) = values.device, values.shape[2:]
    knots = [-(-(side - 1) // BETWEEN) + 1 for side in (height, width)]
    drawn = most * (2 * torch.rand(len(values), 2, *knots, device=device) - 1)
    whole = [(count - 1) * BETWEEN + 1 for count in knots]
    u = F.interpolate(drawn, whole, mode="bilinear", align_corners=True)[:, :, :height, :width]
    row, column = (torch.arange(side, device=device) for side in (height, width))
    sizes = beside(pictures.sizes, values)
    from_edge = [
        torch.minimum(place, size.unsqueeze(1) - 1 - place).clamp_min(0)
        for place, size in ((row, sizes[:, 0]), (column, sizes[:, 1]))
    ]
    inside = torch.minimum(from_edge[0].unsqueeze(2), from_edge[1].unsqueeze(1)) / (2 * most)  # (B, H, W)
    u = u * inside.clamp_max(1).unsqueeze(1)
    y, x = row.unsqueeze(1) + u[:, 0], column + u[:, 1]
    return _taken(values, x, y, pictures.sizes)


def thickened(pictures: Grid, by: Tensor, *, most: float) -> Grid:
    """Bright lines whose edges are moved out by so many pixels in each picture (B,), or in where it is below 0.

    most: no edge moves further, which is known without looking at `by` on a device.
    """
    by = by.to(pictures.values.device)[:, None, None, None]
    result = pictures.zeroed()
    for level in range(math.ceil(most)):
        # Padded by hand: outside of a picture stands 0, as it does in a batch with larger ones.
        around = F.pad(result.values, (1, 1, 1, 1))
        grown = torch.where(by > 0, F.max_pool2d(around, 3, stride=1), -F.max_pool2d(-around, 3, stride=1))
        share = (by.abs() - level).clamp(0, 1).to(grown.dtype)
        result = Grid(result.values.lerp(grown, share), pictures.sizes).zeroed()
    return result


def _within(most: float, like: Tensor) -> Tensor:
    """(B,) numbers between -most and most."""
    return most * (2 * torch.rand(len(like), device=like.device) - 1)


def _later(values: Tensor, steps: Tensor, lengths: Tensor) -> Tensor:
    """Each row so many steps later, or earlier where it is below 0; what comes in from outside is 0."""
    place = torch.arange(values.shape[1], device=values.device) - steps.unsqueeze(1)
    outside = (place < 0) | (place >= lengths.unsqueeze(1))
    rows = torch.arange(len(values), device=values.device).unsqueeze(1)
    found = values[rows, place.clamp(0, max(values.shape[1] - 1, 0))]
    return found.masked_fill(outside[(...,) + (None,) * (values.dim() - 2)], 0)
