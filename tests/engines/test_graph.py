"""The graph engine where there is no GPU: refusals, workspaces and costs. Numbers: test_graph_interpreted.py."""

from __future__ import annotations

import pytest
import torch

from recurra import EngineError, Padded, Recurrent
from recurra.cells.lstm import LSTM
from recurra.engines.engine import Work
from recurra.engines.graph import Graph, Workspaces, rows_like, steps_like
from recurra.engines.triton_kernels import is_interpreted
from recurra.engines.workspace import Workspace
from tests.engines.test_triton_source import plan_of


def test_on_a_cpu_it_is_refused_in_words() -> None:
    if is_interpreted():
        pytest.skip("the interpreter runs on the CPU")
    rnn = Recurrent("gru", 3, 4, engine="graph")
    with pytest.raises(EngineError, match="it runs on a GPU, but the batch is on cpu"):
        rnn(Padded.full(torch.zeros(1, 2, 3)))


@pytest.mark.parametrize(("rows", "most"), [(1, 1), (7, 7), (16, 16), (33, 36), (200, 208), (1000, 1024)])
def test_few_workspaces_serve_batches_of_many_sizes(rows: int, most: int) -> None:
    assert rows <= rows_like(rows) <= most
    assert len({rows_like(n) for n in range(1, 257)}) <= 60
    assert steps_like(rows, is_full=True) == rows
    assert steps_like(rows, is_full=False) >= rows


def test_a_workspace_is_used_again_once_it_is_given_back() -> None:
    plan, spaces, cpu = plan_of("lstm"), Workspaces(), torch.device("cpu")
    first = spaces.take(plan, 4, 10, torch.float32, cpu, is_full=True)
    second = spaces.take(plan, 4, 10, torch.float32, cpu, is_full=True)
    assert first.workspace is not second.workspace
    spaces.give_back(first)
    third = spaces.take(plan, 4, 8, torch.float32, cpu, is_full=True)
    assert third.workspace is first.workspace
    spaces.give_back(third)
    longer = spaces.take(plan, 4, 11, torch.float32, cpu, is_full=True)
    assert longer.workspace is not first.workspace
    assert longer.workspace.steps >= 11


def test_a_kernel_that_gave_up_waiting_is_an_error() -> None:
    workspace = Workspace(plan_of("lstm"), 2, 3, torch.float32, torch.device("cpu"))
    workspace.check()
    workspace.failed.fill_(1)
    with pytest.raises(EngineError, match=r"gave up; its results are wrong"):
        workspace.check()


def test_products_of_float32_without_matrix_units_cost_more_than_those_of_half_precision() -> None:
    work = Work(LSTM, 1, 32, 64, 512, 512, 2048, 2048 * 512, 0, True, "cuda", torch.float32, False, 1, True)
    assert Graph().cost(work._replace(autocast=True)) < Graph().cost(work)
