"""The graph engine where there is no GPU: refusals, workspaces and costs. Numbers: test_graph_interpreted.py."""

from __future__ import annotations

import pytest
import torch

from recurra import EngineError, Padded, Recurrent
from recurra.cells.lstm import LSTM
from recurra.engines.choice import by_cost
from recurra.engines.engine import Work
from recurra.engines.graph import Graph, Workspaces, rows_like, steps_like
from recurra.engines.report import Replayed
from recurra.engines.scan import Scan
from recurra.engines.triton_kernels import is_interpreted
from recurra.engines.vendor import Vendor
from recurra.engines.waiting import failure_flag
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


MEASURED = {  # milliseconds of an LSTM in bfloat16 inside a CUDA graph: of cuDNN, and of this engine
    (1, 128, 512): (1.556, 0.92),
    (32, 64, 512): (0.921, 0.580),
    (128, 50, 512): (0.878, 0.650),
    (64, 64, 1024): (1.373, 1.088),
    (256, 100, 1024): (3.765, 3.129),
    (64, 512, 768): (9.681, 6.742),
    (16, 1024, 2048): (25.844, 22.369),
}


def layer_of(rows: int, steps: int, units: int) -> Work:
    weights = 4 * units * units
    return Work(LSTM, 1, rows, steps, units, units, 4 * units, weights, 0, True, "cuda", torch.bfloat16, False, 1, True)


@pytest.mark.parametrize(("shape", "times"), MEASURED.items(), ids=str)
def test_inside_a_graph_the_estimates_are_those_of_replayed_kernels(
    shape: tuple[int, int, int], times: tuple[float, float]
) -> None:
    work = layer_of(*shape)._replace(graphed=True)
    found = (1e3 * Vendor().cost(work), 1e3 * Graph().cost(work))
    assert found == pytest.approx(times, rel=0.12)
    able = [engine.name for engine in by_cost(work) if engine.name in ("vendor", "graph", "loop")]
    assert able == ["graph", "vendor", "loop"]


IN_FLOAT16 = {  # milliseconds of torch.nn.LSTM in float16 inside a CUDA graph: section 1 of cells_on_gpu.txt
    (1, 128, 512): 1.560,
    (32, 64, 512): 0.502,
    (128, 50, 512): 1.289,
    (64, 64, 1024): 1.414,
    (256, 100, 1024): 3.784,
    (64, 512, 768): 9.975,
    (16, 1024, 2048): 26.346,
}


@pytest.mark.parametrize("by_autocast", [False, True])
@pytest.mark.parametrize(("shape", "milliseconds"), IN_FLOAT16.items(), ids=str)
def test_in_float16_the_vendor_is_taken_where_its_kernel_was_faster(
    shape: tuple[int, int, int], milliseconds: float, by_autocast: bool
) -> None:
    work = layer_of(*shape)._replace(dtype=torch.float16, graphed=True)
    if by_autocast:
        work = work._replace(dtype=torch.float32, autocast=True, lower=torch.float16)
    assert 1e3 * Vendor().cost(work) == pytest.approx(milliseconds, rel=0.12)
    fastest = next(engine.name for engine in by_cost(work) if engine.name in ("vendor", "graph"))
    assert fastest == ("vendor" if shape == (32, 64, 512) else "graph")


def test_a_batch_of_no_rows_has_a_cost_in_float16_too() -> None:
    assert Vendor().cost(layer_of(0, 5, 8)._replace(dtype=torch.float16, graphed=True)) > 0


def test_called_from_python_a_short_lstm_stays_with_the_vendor() -> None:
    work = layer_of(128, 50, 512)
    assert Vendor().cost(work) < Graph().cost(work)


def test_a_linear_cell_is_scanned_inside_a_graph_too() -> None:
    work = layer_of(16, 4096, 256)._replace(weights=0, width=512, graphed=True)
    assert Scan().cost(work) < Graph().cost(work)


def test_float32_stays_with_the_vendor_inside_a_graph() -> None:
    work = layer_of(128, 50, 512)._replace(dtype=torch.float32, graphed=True)
    assert Vendor().cost(work) < Graph().cost(work)


def test_the_report_says_which_engine_runs_inside_a_graph_and_why() -> None:
    [layer] = Recurrent("lstm", 3, 4).engine_report().layers
    assert layer.replayed is None, "on a CPU nothing is replayed"
    layer = layer._replace(engine=Vendor(), replayed=Replayed(Graph(), 1.35))
    assert layer.lines(1)[-1] == (
        "    in steps that are replayed from a CUDA graph: graph (there the host's time does not count, and vendor is "
        "estimated 1.4 times as slow)"
    )
    assert layer.engines_in_words() == "vendor, and graph where steps are replayed"


def test_the_flag_of_kernels_that_gave_up_is_on_the_host_whichever_device_is_the_default() -> None:
    with torch.device("meta"):
        assert failure_flag.__wrapped__("cpu").item() == 0
