"""How the steps of a direction are shared out among the programs of one kernel, or that they are run one by one.

What is fastest depends on how many rows and units there are and on how often programs wait for each other at a step,
in ways that no formula foretells: so there is a table of sizes, and a layer takes what the nearest of them has.
benchmarks/tiles_on_gpu.py measures what belongs into it; of the sizes of the table, it has been run for a GRU of 512
units in 32 rows only.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import torch

from recurra.engines.persistent_source import CHUNK, Persistent
from recurra.engines.triton_source import power_of_two

Direction: TypeAlias = Literal["forward", "inference", "backward"]

MOST_BLOCKS = 64
"""Into how many blocks a persistent kernel shares out rows at most."""

ON_CHIP = 180 << 10
"""Bytes of matrices that one program keeps on the chip, of an H200."""

BESIDE = 47 << 10
"""Of the memory that a program may have on the chip, so much is left for all else: an H200 has 227 KiB."""


class Tile(NamedTuple):
    """What one program of a persistent kernel owns, and how it multiplies."""

    rows: int
    units: int
    warps: int
    chunk: int = 0  # of a matrix that is read at each step, so many rows at a time; 0: it stays on the chip
    stages: int = 1  # how many chunks are read ahead
    part: int = CHUNK  # of a matrix that stays on the chip: how many rows are multiplied by one instruction of Triton

    def grid(self, units: int, rows: int) -> tuple[int, int]:
        return -(-units // self.units), -(-rows // self.rows)


class Size(NamedTuple):
    """A size of the table: which way, whether programs wait for each other more than once a step, rows, units."""

    way: Literal["forward", "backward"]
    waits_again: bool
    rows: int
    units: int

    def distance(self, rows: int, units: int) -> float:
        return abs(math.log2(rows / self.rows)) + abs(math.log2(units / self.units))


# For an H200 in bfloat16. None: step by step. Where programs wait for each other once, these are the tiles with which
# the layers of benchmarks/results/cells_on_gpu.txt were measured, not compared with others; where they wait again,
# those that were fastest for a GRU written by hand, but for 16 x 2048, which was never compared.
TABLE: dict[Size, Tile | None] = {
    Size("forward", False, 1, 512): Tile(16, 8, 4),
    Size("forward", False, 32, 512): Tile(16, 8, 4),
    Size("forward", False, 128, 512): Tile(32, 16, 8),
    Size("forward", False, 64, 768): Tile(32, 16, 8),
    Size("forward", False, 64, 1024): Tile(32, 16, 8),
    Size("forward", False, 256, 1024): None,
    Size("forward", False, 16, 2048): None,
    Size("backward", False, 64, 512): None,
    Size("forward", True, 1, 512): Tile(16, 8, 4),
    Size("forward", True, 32, 512): Tile(16, 8, 4),
    Size("forward", True, 128, 512): Tile(32, 16, 4),
    Size("forward", True, 64, 1024): Tile(32, 16, 4, 128, 3),
    Size("forward", True, 256, 1024): None,
    Size("forward", True, 16, 2048): None,
    Size("backward", True, 1, 512): Tile(16, 8, 4, part=256),
    Size("backward", True, 32, 512): Tile(16, 8, 4, part=256),  # 5.8 us a step; in parts of 512 rows 6.7
    Size("backward", True, 128, 512): Tile(32, 16, 4),
    Size("backward", True, 64, 1024): Tile(32, 16, 4, 128, 3),
    Size("backward", True, 256, 1024): None,
    Size("backward", True, 16, 2048): None,
}

OTHERS = (Tile(16, 8, 4), Tile(32, 8, 8), Tile(16, 16, 8), Tile(32, 16, 8), Tile(64, 8, 8), Tile(64, 16, 8))
"""What is tried elsewhere, the first first: where the programs of the nearest size do not fit, and in tf32."""

MOST_NUMBERS = 1 << 17
"""Rows times units up to which all steps are one kernel; beyond, the vendor's products are faster."""

MOST_ROWS = 128
MOST_WEIGHTS = 1 << 20
"""Up to so many rows, and numbers of matrices, all steps are one kernel where a program computes whole rows: a layer
norm LSTM of 512 units. With 768 and 1,024 units, steps that run one by one were 4 % faster."""

WIDEST_BACKWARD = 512
"""Up to so many units all backward steps are one kernel in tf32, where programs wait for each other twice a step."""


def tile_of(
    kernel: Persistent, direction: Direction, rows: int, dtype: torch.dtype, device: torch.device
) -> Tile | None:
    """How the steps of a direction are shared out among programs which all fit on the GPU at the same time; None where
    they run faster one by one, or nothing fits."""
    if device.type == "cpu":  # the interpreter runs programs one after the other: none may wait for another
        rows_at_once = 1 if kernel.is_rowwise else 16
        return Tile(rows_at_once, max(16, power_of_two(kernel.units)), 4)
    about = torch.cuda.get_device_properties(device)
    tf32 = torch.backends.cuda.matmul.allow_tf32
    on_chip = on_chip_of(getattr(about, "shared_memory_per_block_optin", ON_CHIP + BESIDE))  # older torch lacks it
    return choice(kernel, direction, rows, dtype, processors=about.multi_processor_count, tf32=tf32, on_chip=on_chip)


def on_chip_of(most: int) -> int:
    """Bytes of matrices that one program keeps on the chip, of a GPU where it may have so many bytes there.

    >>> on_chip_of(227 << 10) >> 10, on_chip_of(163 << 10) >> 10, on_chip_of(99 << 10) >> 10
    (180, 116, 52)
    """
    return max(0, most - BESIDE)


def choice(
    kernel: Persistent,
    direction: Direction,
    rows: int,
    dtype: torch.dtype,
    *,
    processors: int,
    tf32: bool,
    on_chip: int = ON_CHIP,
) -> Tile | None:
    """The same for a GPU of so many processors, each with room for so many bytes of matrices."""
    if kernel.is_rowwise:
        element = torch.empty((), dtype=dtype).element_size()
        return None if dtype == torch.float32 else rowwise_tile(kernel, rows, element, processors, on_chip)
    waits_again = kernel.passes > 1
    way: Literal["forward", "backward"] = "backward" if direction == "backward" else "forward"
    nearest: Tile | None = OTHERS[0]
    if rows * kernel.units > MOST_NUMBERS:
        return None
    if dtype != torch.float32:
        sizes = [size for size in TABLE if (size.way, size.waits_again) == (way, waits_again)]
        nearest = TABLE[min(sizes, key=lambda size: size.distance(rows, kernel.units))]
    elif not tf32 or (way == "backward" and (not waits_again or kernel.units > WIDEST_BACKWARD)):
        # Products of float32 proper have no matrix units, and the vendor's are faster without them.
        nearest = None
    if nearest is None:
        return None
    element = torch.empty((), dtype=dtype).element_size()
    tiles = (nearest, *OTHERS)
    return next((tile for tile in tiles if fits(tile, kernel, rows, element, processors, on_chip)), None)


def rowwise_tile(kernel: Persistent, rows: int, element: int, processors: int, on_chip: int) -> Tile | None:
    """Few rows in a block, so that a step's passes run at the same time, and as many programs as there is room for."""
    if rows > MOST_ROWS or kernel.terms * kernel.units > MOST_WEIGHTS:
        return None
    of_block = 16 if rows <= 32 else 32
    blocks = -(-rows // of_block)
    columns = max(16, power_of_two(-(-kernel.units // max(1, processors // blocks))))
    tile = Tile(of_block, columns, 4)
    has_program_for_each = tile.grid(kernel.units, rows)[0] >= of_block
    return tile if has_program_for_each and fits(tile, kernel, rows, element, processors, on_chip) else None


def fits(tile: Tile, kernel: Persistent, rows: int, element: int, processors: int, on_chip: int = ON_CHIP) -> bool:
    """Whether all programs can run at the same time, each with its matrices on the chip if it is to keep them there."""
    across, down = tile.grid(kernel.units, rows)
    held = 0 if tile.chunk else kernel.terms * tile.units * element
    return across * down <= processors and down <= MOST_BLOCKS and held <= on_chip
