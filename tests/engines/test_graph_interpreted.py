"""The graph engine by Triton's interpreter: every cell and step function against the loop. Run by make triton-test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from recurra import Padded, Recurrent
from recurra.engines.graph import WORKSPACES
from recurra.engines.persistent_source import Persistent
from recurra.engines.tiles import Tile
from recurra.engines.triton_kernels import is_interpreted
from recurra.engines.triton_source import power_of_two
from recurra.recording import graphed, recording
from recurra.stacks.recurrent import States
from tests.engines.comparison import assert_agree, everything
from tests.engines.steps import HEADS, STEPS
from tests.engines.test_triton_source import PLANNED
from tests.variants import EVERY, batch, flat, model, random_states

if not is_interpreted():
    pytest.skip("make triton-test runs this with Triton's interpreter", allow_module_level=True)

# The interpreter computes with numpy, and warns of what kernels do to numbers that no mask lets through.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")


def single(rnn: Recurrent, lengths: list[int]) -> tuple[Padded, States]:
    """A batch and start states in float32."""
    x = batch(lengths, rnn.input_size)
    states = random_states(rnn, len(lengths))
    lowered = tuple(tuple(type(s)(*(field.float() for field in s)) for s in layer) for layer in states)
    return Padded(x.values.float(), x.lengths), lowered


CHUNKS = {"one kernel": 0, "one kernel in chunks": 16, "step by step": None}


def tile(kernel: Persistent, chunk: int | None) -> Tile | None:
    """One program for all units, or columns of products: the interpreter runs programs one after the other."""
    rows = 1 if kernel.is_rowwise else 16
    return None if chunk is None else Tile(rows, max(16, power_of_two(kernel.units)), 4, chunk=chunk)


@pytest.fixture(params=list(CHUNKS))
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All steps in one kernel, where a cell allows it, its matrices on the chip or read in chunks; or step by step."""
    monkeypatch.setattr("recurra.engines.workspace.tile_of", lambda kernel, *_: tile(kernel, CHUNKS[request.param]))
    WORKSPACES.idle.clear()
    yield
    WORKSPACES.idle.clear()


@pytest.mark.parametrize("variant", [variant for variant in PLANNED if not variant.startswith("ntm")])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.usefixtures("_each_way")
def test_every_cell_agrees_with_the_loop(variant: str, training: bool) -> None:
    rnn = model(EVERY[variant], 5, 6, layers=2, bidirectional=True).float().train(training)
    x, start = single(rnn, [7, 0, 1, 4, 7])
    assert_agree(everything(rnn, "graph", x, start, True), everything(rnn, "loop", x, start, True), 2e-5)


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize("chunk", [0, 32])
def test_products_of_several_tiles_agree_with_the_loop(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.workspace.tile_of", lambda *_: Tile(16, 64, 4, chunk=chunk, part=64))
    WORKSPACES.idle.clear()
    rnn = model(name, 3, 40).float()
    x, start = single(rnn, [4, 0, 3])
    assert_agree(everything(rnn, "graph", x, start, True), everything(rnn, "loop", x, start, True), 2e-5)
    WORKSPACES.idle.clear()


@pytest.mark.parametrize("variant", ["lstm", "gru", "gru of torch", "layer norm"])
@pytest.mark.usefixtures("_each_way")
def test_a_step_that_is_recorded_agrees_with_the_loop(variant: str) -> None:
    """There inputs and their gradients are not copied."""
    rnn = model(EVERY[variant], 5, 6).float()
    for lengths in ([3, 3], [2, 3]):
        x, start = single(rnn, lengths)
        with recording([]):
            found = everything(rnn, "graph", x, start, True)
        assert_agree(found, everything(rnn, "loop", x, start, True), 2e-5)


@pytest.fixture
def _poisoned() -> Iterator[None]:
    """Memory that nothing was written to holds NaN."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    assert torch.empty(2).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("variant", [variant for variant in PLANNED if not variant.startswith("ntm")])
@pytest.mark.usefixtures("_poisoned")
def test_inside_a_graph_no_step_reads_memory_before_it_is_written(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There memory is not set to zeros. Two ways back, of two versions of the weights, full and ragged."""
    rnn = model(EVERY[variant], 5, 6).float()
    for chunk, lengths in ((None, [2, 0, 3]), (0, [3, 3, 3]), (0, [3] * 18), (16, [1, 0, 3])):
        monkeypatch.setattr("recurra.engines.workspace.tile_of", lambda kernel, *_, chunk=chunk: tile(kernel, chunk))
        x, start = single(rnn, lengths)
        with graphed():
            found = answers_twice(rnn, "graph", x, start)
        for ours, theirs in zip(found, answers_twice(rnn, "loop", x, start), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5)
        with torch.no_grad():
            for parameter in rnn.parameters():
                parameter.mul_(0.9)


def answers_twice(rnn: Recurrent, engine: str, x: Padded, start: States) -> list[torch.Tensor]:
    """Outputs, final states and all gradients, found twice by the same graph of autograd."""
    rnn.engine = engine
    torch.manual_seed(5)  # of what is dropped
    values = x.values.clone().requires_grad_()
    own = tuple(tuple(type(s)(*(f.clone().requires_grad_() for f in s)) for s in layer) for layer in start)
    outputs, states = rnn(Padded(values, x.lengths), own)
    answers = [outputs.values, *flat(states)]
    total = sum(((n + 1) * answer.square()).sum() for n, answer in enumerate(answers))
    sources = [values, *flat(own), *rnn.parameters()]
    first = torch.autograd.grad(total, sources, retain_graph=True, allow_unused=True)
    second = torch.autograd.grad(total, sources, allow_unused=True)
    zeros = [torch.zeros_like(each) for each in sources]
    both = [z if g is None else g for g, z in zip((*first, *second), (*zeros, *zeros), strict=True)]
    return [*answers, *both]


HALF_CELLS = ["lstm", "gru", "gru of torch", "peephole", "layer norm", "slstm two heads", "coupled"]


def multiplied(_: object, a: Any, b: Any, d: Any, *__: object) -> Any:
    """What tl.dot is of bfloat16, which numpy lacks: the interpreter of triton 3.6 multiplies its bits as integers."""
    import numpy as np
    from triton import language as tl  # type: ignore[import-not-found,unused-ignore]
    from triton.runtime.interpreter import TensorHandle  # type: ignore[import-not-found,unused-ignore]

    def wide(each: Any) -> Any:
        if each.dtype.scalar == tl.bfloat16:
            return (each.data.astype(np.uint32) << 16).view(np.float32)
        return each.data.astype(np.float32)

    return TensorHandle(np.matmul(wide(a), wide(b)) + d.data, d.dtype.scalar)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("variant", HALF_CELLS)
@pytest.mark.usefixtures("_each_way")
def test_in_half_precision_cells_agree_with_the_loop_in_float64(
    variant: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime import interpreter  # type: ignore[import-not-found,unused-ignore]

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", multiplied)
    torch.manual_seed(0)
    rnn = Recurrent(EVERY[variant], 5, 16).to(dtype)
    x = batch([6, 2, 5], 5)
    found = {}
    for engine, kind in (("graph", dtype), ("loop", torch.float64)):
        rnn = rnn.to(kind)
        rnn.engine = engine
        values = x.values.to(dtype).to(kind).requires_grad_()
        outputs = rnn(Padded(values, x.lengths))[0].values
        weights = torch.linspace(-1, 1, 16, dtype=kind)
        found[engine] = [outputs, *torch.autograd.grad((outputs * weights).sum(), [values, *rnn.parameters()])]
    for ours, theirs in zip(found["graph"], found["loop"], strict=True):
        apart = (ours.double() - theirs).norm() / theirs.norm()
        assert apart < (2e-2 if dtype == torch.bfloat16 else 3e-3), (float(apart), tuple(theirs.shape))


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize("every", [False, True])
def test_rows_with_resets_agree_with_the_loop(name: str, every: bool) -> None:
    rnn = model(name, 3, 8, bidirectional=True).float()
    x, start = single(rnn, [6, 0, 5, 6])
    resets = torch.tensor([[0, 0, 1, 0, 1, 0], [0] * 6, [1, 0, 0, 0, 1, 0], [0, 1, 1, 0, 0, 0]]).bool()
    found = {}
    for engine in ("graph", "loop"):
        rnn.engine = engine
        values = x.values.clone().requires_grad_()
        outputs, states = rnn(Padded(values, x.lengths), start, every=every, resets=resets)
        answers = [outputs.values, *flat(states)]
        total = sum(((n + 1) * answer.square()).sum() for n, answer in enumerate(answers))
        found[engine] = [*answers, *torch.autograd.grad(total, [values, *rnn.parameters()])]
    for ours, theirs in zip(found["graph"], found["loop"], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("variant", ["ntm", "ntm two heads"])
def test_memories_agree_with_the_loop(variant: str) -> None:
    """Apart from other cells, because the interpreter takes a minute for a few steps of larger ones."""
    rnn = model(EVERY[variant], 2, 3).float()
    x, start = single(rnn, [2, 1])
    assert_agree(everything(rnn, "graph", x, start), everything(rnn, "loop", x, start), 2e-5)


@pytest.mark.parametrize("name", [*STEPS, *HEADS])
def test_every_step_function_agrees_with_the_loop(name: str) -> None:
    rnn = model({"name": "tests.engines.steps:Steps", "names": [name]}, 3, 15 if name in HEADS else 7).float()
    x, start = single(rnn, [5, 0, 3])
    # Some make numbers of millions, of which the loop itself has lost the last digits in float32.
    assert_agree(everything(rnn, "graph", x, start), everything(rnn, "loop", x, start), 1e-4)


def test_two_sequences_may_be_read_before_the_first_is_gone_back_through() -> None:
    rnn = model("gru", 3, 8).float()
    batches = [single(rnn, lengths)[0] for lengths in ([5, 2], [5, 5], [3, 1])]
    found = {}
    for engine in ("graph", "loop"):
        rnn.engine = engine
        totals = [rnn(x)[0].values.square().sum() for x in batches]
        found[engine] = [torch.autograd.grad(total, list(rnn.parameters())) for total in reversed(totals)]
    for ours, theirs in zip(found["graph"], found["loop"], strict=True):
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_second_backward_pass_is_right_whether_or_not_its_memory_was_used_again() -> None:
    rnn = model("lstm", 3, 8).float()
    rnn.engine = "graph"
    x, _ = single(rnn, [6, 4])
    total = rnn(x)[0].values.square().sum()
    first = torch.autograd.grad(total, list(rnn.parameters()), retain_graph=True)
    again = torch.autograd.grad(total, list(rnn.parameters()), retain_graph=True)
    other, _ = single(rnn, [6, 6])
    rnn(Padded(other.values + 1, x.lengths))
    late = torch.autograd.grad(total, list(rnn.parameters()))
    for a, b, c in zip(first, again, late, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-5)


def test_second_derivatives_are_those_of_the_loop() -> None:
    rnn = model("peephole_lstm", 3, 8).float()
    x, _ = single(rnn, [4, 3])
    found = []
    for engine in ("graph", "loop"):
        rnn.engine = engine
        values = x.values.clone().requires_grad_()
        [gradient] = torch.autograd.grad(rnn(Padded(values, x.lengths))[0].values.sum(), values, create_graph=True)
        found.append(torch.autograd.grad(gradient.square().sum(), list(rnn.parameters()), allow_unused=True))
    for a, b in zip(*found, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["gru", "lstm", "layer_norm_lstm"])
@pytest.mark.parametrize(("rows", "hidden"), [(1, 16), (1, 21), (3, 21)])
def test_memory_that_inference_has_used_serves_training(name: str, rows: int, hidden: int) -> None:
    WORKSPACES.idle.clear()
    rnn = model(name, 3, hidden).float()
    x, start = single(rnn, [5] * rows)
    rnn.engine = "graph"
    with torch.no_grad():
        rnn(x, start)
    assert_agree(everything(rnn, "graph", x, start), everything(rnn, "loop", x, start), 2e-5)


def test_weights_that_change_are_seen() -> None:
    rnn = model("lstm", 3, 8).float()
    x, start = single(rnn, [4, 2])
    everything(rnn, "graph", x, start)
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.mul_(0.5)
    assert_agree(everything(rnn, "graph", x, start), everything(rnn, "loop", x, start), 2e-5)


def test_without_gradients_nothing_stays_in_use() -> None:
    rnn = model("lstm", 3, 8).float()
    rnn.engine = "graph"
    x, _ = single(rnn, [4, 2])
    with torch.no_grad():
        rnn(x)
    assert not WORKSPACES.busy
    total = rnn(x)[0].values.sum()
    assert len(WORKSPACES.busy) == 1
    del total  # its backward pass never comes
    assert not WORKSPACES.busy
