"""The graph engine and the loops of decoders on a GPU, against the loop in float64. Skipped where there is no GPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.capturing import Pool, capturing
from recurra.engines.graph import WORKSPACES
from recurra.engines.tiles import Tile
from recurra.named import built
from recurra.products.triton_here import has_triton
from recurra.wirings import Shape, Source, Wiring
from recurra.wirings.looping import LOOPS

if not (torch.cuda.is_available() and has_triton()):
    pytest.skip("there is no GPU here", allow_module_level=True)

MOST = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-5}
CELLS = ["lstm", "peephole_lstm", "coupled_lstm", "gru", "slstm", "elman"]


def relative(found: Tensor, exact: Tensor) -> float:
    assert torch.isfinite(found).all()
    return ((found.double() - exact).norm() / exact.norm().clamp_min(1e-30)).item()


def answers(rnn: Recurrent, x: Tensor, lengths: Tensor | None, gradient: Tensor) -> list[Tensor]:
    values = x.to(next(rnn.parameters()).dtype).requires_grad_()
    outputs, states = rnn(Padded.full(values) if lengths is None else Padded(values, lengths))
    found = torch.autograd.grad(outputs.values, [values, *rnn.parameters()], gradient.to(values.dtype))
    return [outputs.values, *(field for layer in states for state in layer for field in state), *found]


@pytest.mark.parametrize("cell", [*CELLS, "layer_norm_lstm"])
@pytest.mark.parametrize("dtype", MOST)
@pytest.mark.parametrize(("rows", "steps", "units"), [(5, 13, 72), (33, 9, 128), (1, 20, 100)])
def test_outputs_states_and_gradients_are_those_of_the_loop(
    cell: str, dtype: torch.dtype, rows: int, steps: int, units: int
) -> None:
    torch.manual_seed(0)
    rnn = Recurrent(cell, 40, units, engine="graph").to("cuda", dtype)
    exact = Recurrent(cell, 40, units, engine="loop").cuda().double()
    exact.load_state_dict({name: weight.double() for name, weight in rnn.state_dict().items()})
    loop = Recurrent(cell, 40, units, engine="loop").to("cuda", dtype)
    loop.load_state_dict(rnn.state_dict())
    for lengths in (None, torch.randint(0, steps + 1, (rows,))):
        x = torch.randn(rows, steps, 40, device="cuda").to(dtype)
        gradient = torch.randn(rows, steps, units, device="cuda").to(dtype)
        expected = answers(exact, x, lengths, gradient)
        # Layer norm of few numbers loses more digits in half precision, in the loop as well.
        most = max(MOST[dtype], 2 * max(map(relative, answers(loop, x, lengths, gradient), expected)))
        for _ in range(3):  # step by step, recorded, replayed
            found = answers(rnn, x, lengths, gradient)
            assert max(map(relative, found, expected)) < most


@pytest.mark.parametrize("cell", [*CELLS, "layer_norm_lstm"])
def test_the_same_batch_gives_the_same_bits(cell: str) -> None:
    rnn = Recurrent(cell, 64, 128, engine="graph").to("cuda", torch.bfloat16)
    x, gradient = (torch.randn(20, 30, n, device="cuda").bfloat16() for n in (64, 128))
    answers(rnn, x, None, gradient)
    first, second = (answers(rnn, x, None, gradient) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_grid_that_never_meets_gives_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.workspace.MOST_LOOKS", 1000)
    rnn = Recurrent("lstm", 32, 64, engine="graph").to("cuda", torch.bfloat16)
    x = Padded.full(torch.randn(4, 5, 32, device="cuda").bfloat16())
    with torch.no_grad():
        rnn(x)
        [workspace] = [
            each for of_key in WORKSPACES.idle.values() for each in of_key if each.counted and each.rows == 4
        ]
        for kernel in workspace.counted:
            workspace.counted[kernel] += 1_000_000  # as if programs were awaited that do not exist
        rnn(x)
        torch.cuda.synchronize()
        with pytest.raises(Exception, match="gave up; its results are wrong"):
            rnn(x)
    WORKSPACES.idle.clear()


def test_a_grid_that_does_not_fit_is_said_and_its_steps_run_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.workspace.tile_of", lambda *_: Tile(16, 8, 4))
    WORKSPACES.idle.clear()
    rnn = Recurrent("lstm", 32, 256, engine="graph").to("cuda", torch.bfloat16)
    x = Padded.full(torch.randn(2000, 3, 32, device="cuda").bfloat16())
    with torch.no_grad():
        with pytest.warns(RuntimeWarning, match="2000 rows and 256 units does not fit on this GPU"):
            found = rnn(x)[0].values
        rnn.engine = "loop"
        assert relative(found, rnn(x)[0].values.double()) < 1e-2
    WORKSPACES.idle.clear()


@pytest.mark.parametrize("cell", [*CELLS, "layer_norm_lstm"])
def test_a_recorded_layer_is_the_layer_and_reads_new_weights(cell: str) -> None:
    """Inside somebody else's graph, inputs, weights and gradients are read where they lie."""
    rnn = Recurrent(cell, 64, 128, engine="graph").to("cuda", torch.bfloat16)
    twin = copy.deepcopy(rnn)
    x, gradient = (torch.randn(20, 30, n, device="cuda").bfloat16() for n in (64, 128))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        answers(rnn, x, None, gradient)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = answers(rnn, x, None, gradient)
    for _ in range(2):
        with torch.no_grad():
            for parameter in rnn.parameters():
                parameter.mul_(0.9)
        graph.replay()
        found = [each.double() for each in recorded]
        twin.load_state_dict(rnn.state_dict())
        again = x.detach().clone()  # torch warns where one tensor has gradients of two streams
        for ours, theirs in zip(found, answers(twin, again, None, gradient), strict=True):
            assert relative(ours, theirs.double()) < 1e-2


def test_after_a_capture_that_failed_earlier_graphs_are_replayed_and_torch_draws() -> None:
    x, pool, drop = torch.ones(64, device="cuda"), Pool(), torch.nn.Dropout(0.5)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        with capturing(pool) as graph:
            dropped = drop(x)
        with pytest.raises(RuntimeError), capturing(pool):
            drop(x).sum().item()  # which waits for the GPU
        found = []
        for _ in range(2):
            torch.cuda.manual_seed(1)
            graph.replay()
            found.append(dropped.clone())
        assert torch.equal(*found)
        assert 0 < int((drop(x) == 0).sum()) < 64
        with capturing(pool):
            drop(x)
    torch.cuda.current_stream().wait_stream(stream)


@pytest.mark.parametrize("engine", ["graph", "auto"])
def test_what_a_plan_or_a_report_is_made_of_is_not_drawn_from_the_numbers_of_a_training(engine: str) -> None:
    found: list[Tensor] = []
    for _ in range(2):  # only the first makes a plan
        rnn = Recurrent(
            {"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.5}]}, 19, 40 + len(engine), engine=engine
        )
        rnn.cuda()
        for parameter in rnn.parameters():
            torch.nn.init.constant_(parameter, 0.01)
        torch.cuda.manual_seed(7)
        if found:
            rnn.engine_report()
        found.append(rnn(Padded.full(torch.ones(3, 5, 19, device="cuda")))[0].values)
    assert torch.equal(*found)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_rows_with_resets_are_those_of_the_loop(cell: str) -> None:
    rnn = Recurrent(cell, 24, 40, bidirectional=True).cuda()
    x = Padded(torch.randn(9, 12, 24, device="cuda"), torch.arange(9) + 4)
    resets = (torch.rand(9, 12, device="cuda") < 0.3) & x.mask
    found = []
    for engine in ("graph", "loop"):
        rnn.engine = engine
        outputs = rnn(x, resets=resets)[0].values
        found.append([outputs, *torch.autograd.grad(outputs.square().sum(), list(rnn.parameters()))])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_auto_takes_the_graph_engine_for_a_cell_that_cudnn_does_not_have() -> None:
    rnn = Recurrent("peephole_lstm", 32, 64).cuda()
    x = Padded.full(torch.randn(4, 50, 32, device="cuda"))
    with torch.autocast("cuda", torch.bfloat16):
        assert rnn.engine_report(x).layers[0].engine.name == "graph"
        assert rnn(x)[0].values.dtype == torch.bfloat16


class Decoding:
    """A wiring and a batch for it."""

    def __init__(self, wiring: str, attention: Any, cell: str = "gru", **options: Any) -> None:
        torch.manual_seed(0)
        self.wiring: Any = built(Wiring, wiring, Shape(cell, 24, (32,), 16, 0, 32, attention, **options)).cuda()
        self.x = torch.randn(13, 7, 24, device="cuda", requires_grad=True)
        self.memory = torch.randn(13, 11, 16, device="cuda", requires_grad=True)
        self.mask = torch.arange(11, device="cuda") < torch.arange(13, device="cuda").unsqueeze(1)

    def run(self, engine: str = "auto") -> tuple[Tensor, Tensor]:
        self.wiring.shape = self.wiring.shape._replace(engine=engine)
        source = Source(self.wiring.remember(self.memory, self.mask), None)
        starts = tuple(cell.start(len(self.x), self.x) for cell in self.wiring.layers)
        found = self.wiring(Padded.full(self.x), self.wiring.start(starts, source), source)
        return found.values, found.weights

    def gradients(self, features: Tensor) -> list[Tensor]:
        sources = [self.x, self.memory, *self.wiring.parameters()]
        return list(torch.autograd.grad(features.square().sum(), sources))


@pytest.mark.parametrize("wiring", ["feeding", "inside", "conditional"])
@pytest.mark.parametrize(
    "attention",
    ["additive", "bilinear", {"name": "bilinear", "look": {"name": "local", "reach": 3}, "gate": True}],
    ids=str,
)
def test_a_replayed_decoder_is_the_loop(wiring: str, attention: Any) -> None:
    decoding = Decoding(wiring, attention, readout="tanh" if isinstance(attention, str) else "maxout")
    features, weights = decoding.run("loop")
    expected = [features, weights, *decoding.gradients(features)]
    for _ in range(4):
        features, weights = decoding.run()
        found = [features, weights, *decoding.gradients(features)]
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        with torch.no_grad():  # an optimiser changes weights where they lie
            for parameter in decoding.wiring.parameters():
                parameter.mul_(0.9)
        features, weights = decoding.run("loop")
        expected = [features, weights, *decoding.gradients(features)]
    assert any(graphs for room in LOOPS.known[decoding.wiring] for graphs in room.graphs.values())


def test_attention_outside_replays_the_graph_engine_where_cudnn_runs_when_called() -> None:
    decoding = Decoding("outside", "bilinear", cell="lstm")
    features, _ = decoding.run("loop")
    expected = [features, *decoding.gradients(features)]
    with torch.autocast("cuda", torch.bfloat16):
        [layer] = decoding.wiring.cells.engine_report(Padded.full(decoding.x)).layers
        assert layer.engines_in_words() == "vendor, and graph where steps are replayed"
        for _ in range(4):
            features, _ = decoding.run()
            found = [features, *decoding.gradients(features)]
            for a, b in zip(found, expected, strict=True):
                assert ((a.double() - b.double()).norm() / b.double().norm()).item() < 3e-2
    assert any(graphs for room in LOOPS.known[decoding.wiring] for graphs in room.graphs.values())


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_newton_finds_what_the_loop_computes(activation: str) -> None:
    rnn = Recurrent({"name": "ind_rnn", "activation": activation}, 12, 70, bidirectional=True).cuda()
    x = Padded(torch.randn(3, 2000, 12, device="cuda"), torch.tensor([2000, 1, 1777]))
    x = x.zeroed()
    found = []
    for rnn.engine in ("newton", "loop"):
        outputs = rnn(x)[0].values
        found.append([outputs, *torch.autograd.grad(outputs.square().mean(), list(rnn.parameters()))])
    for ours, theirs in zip(*found, strict=True):
        assert ((ours - theirs).norm() / theirs.norm()).item() < 1e-4


def test_several_batches_may_wait_for_their_backward_passes() -> None:
    decoding = Decoding("feeding", "bilinear")
    for _ in range(2):
        decoding.gradients(decoding.run()[0])
    waiting = [decoding.run()[0] for _ in range(3)]
    expected = decoding.gradients(decoding.run("loop")[0])
    for features in waiting:
        for a, b in zip(decoding.gradients(features), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_dropout_of_a_replayed_decoder_goes_by_the_seed_and_is_drawn_anew() -> None:
    decoding = Decoding("feeding", "bilinear", dropout=0.5)
    for _ in range(3):
        decoding.run()
    found = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        found.append(decoding.run()[0].detach())
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize("wiring", ["feeding", "inside", "conditional"])
def test_hard_attention_of_a_replayed_decoder_draws_places_anew_by_the_seed(wiring: str) -> None:
    decoding = Decoding(wiring, {"name": "additive", "look": {"name": "hard", "soft": 0.0}})
    for _ in range(3):
        decoding.run()
    assert any(graphs for room in LOOPS.known[decoding.wiring] for graphs in room.graphs.values())
    found = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        found.append(decoding.run()[1].detach())
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])
    real = decoding.mask.any(1)
    assert (found[0][real].sum(-1) == 1).all()
    assert {*found[0].unique().tolist()} == {0.0, 1.0}
