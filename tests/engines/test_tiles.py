"""How steps are shared out among the programs of one kernel: what the table says, and what fits elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from recurra.engines.persistent_source import Persistent, persistent
from recurra.engines.tiles import MOST_NUMBERS, TABLE, Direction, Size, choice, fits
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


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_float32_without_matrix_units_runs_step_by_step(direction: Direction) -> None:
    assert choice(kernel(True, 512), direction, 32, SINGLE, processors=132, tf32=True) is not None
    assert choice(kernel(True, 512), direction, 32, SINGLE, processors=132, tf32=False) is None
