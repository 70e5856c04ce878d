"""Rows that are looked up in a table, against the loop that reads them one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recurra import Padded, Recurrent

CELLS: list[Any] = [
    "lstm",
    {"name": "lstm", "bias": False},
    {"name": "gru", "reset": "after"},
    {"name": "gru", "reset": "after", "update": "keep"},
    {"name": "gru", "reset": "after", "bias": False},
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize(("size", "rows", "steps"), [(1, 1, 1), (5, 3, 4), (17, 101, 3)])
def test_a_looked_up_batch_is_read_as_the_loop_reads_it(
    cell: Any, size: int, rows: int, steps: int, threads: int
) -> None:
    torch.manual_seed(size)
    network = Recurrent(cell, 3, size, bidirectional=True).double().eval()
    for weight in network.parameters():
        nn.init.normal_(weight)
    table = torch.randn(6, 3, dtype=torch.float64)
    lengths = torch.randint(0, steps + 1, (rows,))
    batch = Padded(torch.randint(0, 6, (rows, steps)), lengths)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            if not network.looks_up():
                pytest.skip("there is no C compiler here")
            outputs, states = network.look_up(network.project(table), batch)
            nothing, same = network.look_up(network.project(table), batch, outputs=False)
            network.engine = "loop"
            expected, finals = network(Padded(table[batch.values], lengths))
    finally:
        torch.set_num_threads(before)
    assert outputs is not None
    assert nothing is None
    assert_close(outputs.values, expected.values)
    for own, again, wanted in zip(states[0], same[0], finals[0], strict=True):
        for field, once_more, goal in zip(own, again, wanted, strict=True):
            assert_close(field, goal)
            assert_close(once_more, goal)


@pytest.mark.parametrize(
    "network",
    [
        Recurrent("lstm", 3, 4, layers=2),
        Recurrent("gru", 3, 4),  # resets before U
        Recurrent({"name": "lstm", "candidate": "sigmoid"}, 3, 4),
        Recurrent("elman", 3, 4),
        Recurrent("lstm", 3, 4, engine="loop"),
    ],
    ids=lambda network: str(network.engine_report(slower_ones=False))[:20],
)
def test_other_stacks_do_not_look_up(network: Recurrent) -> None:
    with torch.no_grad():
        assert not network.eval().looks_up()


def test_where_a_gradient_is_wanted_nothing_is_looked_up() -> None:
    assert not Recurrent("lstm", 3, 4).eval().looks_up()


def test_a_row_that_the_table_does_not_have_is_refused() -> None:
    network = Recurrent("lstm", 2, 3).eval()
    with torch.no_grad():
        if not network.looks_up():
            pytest.skip("there is no C compiler here")
        with pytest.raises(IndexError, match="row 5 of a table of 4"):
            network.look_up(network.project(torch.zeros(4, 2)), Padded.full(torch.tensor([[1, 5]])))
        with pytest.raises(IndexError, match="1 rows of 3 to 3 steps in a batch of 1 rows and 2 steps"):
            network.look_up(network.project(torch.zeros(4, 2)), Padded(torch.tensor([[1, 2]]), torch.tensor([3])))
        with pytest.raises(IndexError, match="1 rows of -1 to -1 steps in a batch of 1 rows and 2 steps"):
            network.look_up(network.project(torch.zeros(4, 2)), Padded(torch.tensor([[1, 2]]), torch.tensor([-1])))
        with pytest.raises(IndexError, match="row -1 of a table of 4"):
            network.look_up(network.project(torch.zeros(4, 2)), Padded.full(torch.tensor([[1, -1]])))
