"""How steps are shared out among the programs of one kernel: what the table says, and what fits elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from recurra.engines.persistent_source import Persistent, persistent
from recurra.engines.tiles import MOST_NUMBERS, MOST_ROWS, TABLE, Direction, Size, Tile, choice, fits
from recurra.engines.workspace import is_too_large, persistent_of
from tests.engines.test_triton_source import plan_of

HALF, SINGLE = torch.bfloat16, torch.float32


def kernel(waits_again: bool, units: int) -> Persistent:
    plan = plan_of("gru" if waits_again else "lstm")
    return replace(persistent(plan, plan.forward, "whole"), units=units)


@pytest.mark.parametrize("size", TABLE)
def test_a_size_of_the_table_gets_what_stands_there(size: Size) -> None:
    found = choice(kernel(size.waits_again, size.units), size.way, size.rows, HALF, processors=132, tf32=True)
    assert found == (TABLE[size] if size.rows * size.units <= MOST_NUMBERS else None)


@pytest.mark.parametrize("processors", [132, 20])
@pytest.mark.parametrize("dtype", [HALF, SINGLE])
@pytest.mark.parametrize("direction", ["forward", "inference", "backward"])
def test_all_programs_fit_whatever_the_size(direction: Direction, dtype: torch.dtype, processors: int) -> None:
    found = 0
    for waits_again in (True, False):
        for units in (24, 200, 512, 1024, 3000):
            of_size = kernel(waits_again, units)
            for rows in (1, 7, 64, 300, 5000):
                tile = choice(of_size, direction, rows, dtype, processors=processors, tf32=True)
                if tile is not None:
                    assert fits(tile, of_size, rows, dtype.itemsize, processors)
                    found += 1
    assert found


@pytest.mark.parametrize("on_chip", [180 << 10, 116 << 10, 52 << 10, 1 << 10])
def test_on_gpus_with_less_memory_beside_each_processor_matrices_that_stay_there_fit(on_chip: int) -> None:
    kept = 0
    for waits_again in (True, False):
        for units in (24, 200, 512, 768, 1024):
            of_size = replace(kernel(waits_again, units), terms=4 * units)
            for rows in (1, 16, 64):
                tile = choice(of_size, "forward", rows, HALF, processors=132, tf32=True, on_chip=on_chip)
                if tile is not None and not tile.chunk:
                    assert of_size.terms * tile.units * HALF.itemsize <= on_chip
                    kept += 1
    assert (kept > 0) == (on_chip > 1 << 10)


def test_where_a_tile_of_the_table_does_not_fit_the_steps_run_otherwise() -> None:
    lstm = replace(kernel(False, 512), terms=4 * 512)
    assert choice(lstm, "forward", 128, HALF, processors=132, tf32=True) == Tile(32, 16, 8)
    small = choice(lstm, "forward", 128, HALF, processors=132, tf32=True, on_chip=52 << 10)
    assert small is None or small.units < 16
    assert choice(lstm, "forward", 128, HALF, processors=132, tf32=True, on_chip=1 << 10) is None


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_float32_without_matrix_units_runs_step_by_step(direction: Direction) -> None:
    assert choice(kernel(True, 512), direction, 32, SINGLE, processors=132, tf32=True) is not None
    assert choice(kernel(True, 512), direction, 32, SINGLE, processors=132, tf32=False) is None


@pytest.mark.parametrize("rows", [1, 31, 64, 128, 129])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_where_programs_compute_whole_rows_every_row_has_one(rows: int, direction: Direction) -> None:
    plan = plan_of("layer norm", 512)
    kernel = persistent_of(plan, direction)
    assert kernel is not None
    assert kernel.is_rowwise
    tile = choice(kernel, direction, rows, HALF, processors=132, tf32=True)
    assert (tile is None) == (rows > MOST_ROWS)
    if tile is not None:
        programs, _ = tile.grid(kernel.units, rows)
        assert programs >= tile.rows
        assert fits(tile, kernel, rows, HALF.itemsize, 132)
    assert choice(kernel, direction, rows, SINGLE, processors=132, tf32=True) is None


def test_wide_rows_run_step_by_step() -> None:
    kernel = persistent_of(plan_of("layer norm", 1024), "forward")
    assert kernel is not None
    assert choice(kernel, "forward", 32, HALF, processors=132, tf32=True) is None


@pytest.mark.parametrize("said", ["too many blocks in cooperative launch", "too large in cooperative launch"])
def test_what_drivers_call_a_grid_that_does_not_fit_is_known(said: str) -> None:
    assert is_too_large(RuntimeError(f"Triton Error [CUDA]: {said}"))
    assert not is_too_large(RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"))
