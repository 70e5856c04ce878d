"""The planned engine: what a plan is, what has none, and that compiled passes never fail a user."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra import Cell, Padded, Recurrent
from recurra.cells import Product, build
from recurra.engines import Planned, c_library
from recurra.engines.c_passes import Compiled
from recurra.engines.plan import Plan, make_plan
from recurra.engines.trace import trace
from tests.engines.comparison import assert_agree, everything
from tests.forked import Ended, Forks, forks
from tests.variants import batch, model, random_states


def plan_of(name: str, hidden: int = 4) -> Plan:
    cell = build(name, 3, hidden).double()
    width = cell.project(torch.zeros(1, 3).double(), cell.fixed(1, torch.zeros(1).double())).shape[-1]
    return make_plan(trace(cell, width, torch.zeros(1).double()))


@pytest.mark.parametrize(
    ("name", "products", "passes"),
    [
        ("elman", 1, 1),
        ("lstm", 1, 1),
        ("peephole_lstm", 1, 1),
        ("coupled_lstm", 1, 1),
        ("layer_norm_lstm", 1, 1),
        ("slstm", 1, 1),
        ("gru", 2, 2),
        ("min_gru", 0, 1),
        ("ind_rnn", 0, 1),
    ],
)
def test_a_step_has_as_few_products_and_passes_as_its_equations(name: str, products: int, passes: int) -> None:
    plan = plan_of(name)
    for phases in (plan.forward, plan.inference, plan.backward):
        assert len(phases.passes) == passes
        assert len(phases.before) + sum(len(slot) for slot in phases.after_pass) == products


def test_two_weights_of_one_operand_are_one_product() -> None:
    cell = build({"name": "gru", "reset": "after"}, 3, 4).double()
    plan = make_plan(trace(cell, 12, torch.zeros(1).double()))
    [product] = plan.forward.before
    assert len(product.weights) == 2
    assert product.out.width == 12


def test_an_lstm_saves_its_gates_and_nothing_that_it_can_compute_again() -> None:
    plan = plan_of("lstm", hidden=4)
    assert sum(buffer.width for buffer in plan.saved) == 5 * 4  # i, f, ĉ, o and tanh(c')
    assert not plan.needs_inputs
    assert len(plan.matrices) == 1
    assert plan.sums == []


def test_diagonal_peepholes_are_added_up_on_the_way() -> None:
    assert len(plan_of("peephole_lstm").sums) == 3


def test_a_plan_can_be_read() -> None:
    text = str(plan_of("gru"))
    assert text.splitlines()[0] == "forward, each step:"
    assert "product: forward product 0 = previous 0 · 4 x 8 weights" in text
    assert text.count("row pass:") == 4
    assert "matrix gradient" in text


# Three cells as a researcher would change one.


class GateState(NamedTuple):
    h: Tensor
    c: Tensor


class GateFixed(NamedTuple):
    U: Product


class OneGateMore(Cell[GateState, GateFixed]):
    """An LSTM with a gate on its way out to the next layer.

    h' = s ∘ o ∘ tanh(c') + (1 − s) ∘ h
    """

    State = GateState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, 5 * hidden_size)
        self.U = nn.Parameter(torch.randn(5 * hidden_size, hidden_size) * 0.3)

    def fixed(self, rows: int, like: Tensor) -> GateFixed:
        return GateFixed(Product(self.U))

    def project(self, x: Tensor, fixed: GateFixed) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: GateState, fixed: GateFixed) -> GateState:
        i, f, g, o, s = (inputs + fixed.U(state.h)).chunk(5, dim=-1)
        c = f.sigmoid() * state.c + i.sigmoid() * g.tanh()
        h = s.sigmoid() * (o.sigmoid() * c.tanh()) + (1 - s.sigmoid()) * state.h
        return GateState(h, c)


class ProductInGate(Cell[GateState, tuple[()]]):
    """A gate that sees the new cell through a matrix of its own, and no `Product` in sight."""

    State = GateState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, 3 * hidden_size)
        self.U = nn.Linear(hidden_size, 3 * hidden_size)
        self.V = nn.Linear(hidden_size, hidden_size, bias=False)

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: GateState, fixed: tuple[()]) -> GateState:
        f, g, o = (inputs + self.U(state.h)).chunk(3, dim=-1)
        c = f.sigmoid() * state.c + (1 - f.sigmoid()) * functional.softplus(g)
        return GateState(torch.sigmoid(o + self.V(c.sin())) * c.tanh(), c)


class NormalisedState(NamedTuple):
    h: Tensor


class Normalised(Cell[NormalisedState, tuple[()]]):
    """A layer norm of the whole, with torch's own module."""

    State = NormalisedState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)
        self.U = nn.Linear(hidden_size, hidden_size)
        self.norm = nn.LayerNorm(hidden_size)

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: NormalisedState, fixed: tuple[()]) -> NormalisedState:
        return NormalisedState(functional.silu(self.norm(inputs + self.U(state.h))) - 0.1 * state.h**2)


class Looks(Normalised):
    """Python that looks at values."""

    def parts(self, inputs: Tensor, state: NormalisedState, fixed: tuple[()]) -> NormalisedState:
        return NormalisedState(inputs.tanh() if inputs.sum() > 0 else state.h)


class AcrossRows(Normalised):
    """Rows that see each other."""

    def parts(self, inputs: Tensor, state: NormalisedState, fixed: tuple[()]) -> NormalisedState:
        return NormalisedState((inputs + state.h - state.h.mean(0)).tanh())


class Sorts(Normalised):
    """An operation that no row pass has."""

    def parts(self, inputs: Tensor, state: NormalisedState, fixed: tuple[()]) -> NormalisedState:
        return NormalisedState(torch.sort(inputs + state.h, dim=-1).values)


class LaterPass(Cell[GateState, tuple[()]]):
    """The gradient of c is wanted, as it is, behind the product of h."""

    State = GateState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, 2 * hidden_size)
        self.U = nn.Linear(hidden_size, hidden_size)

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: GateState, fixed: tuple[()]) -> GateState:
        a, b = inputs.chunk(2, dim=-1)
        return GateState(self.U((a + state.h).tanh()), b + 0.5 * state.c)


class MaskedState(NamedTuple):
    h: Tensor


class MaskedFixed(NamedTuple):
    mask: Tensor  # (B, H), of bool


class Masked(Cell[MaskedState, MaskedFixed]):
    """Half of the units of each row do not move; which ones is drawn once per sequence."""

    State = MaskedState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)

    def fixed(self, rows: int, like: Tensor) -> MaskedFixed:
        return MaskedFixed(torch.rand(rows, self.hidden_size) < 0.5)

    def project(self, x: Tensor, fixed: MaskedFixed) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: MaskedState, fixed: MaskedFixed) -> MaskedState:
        return MaskedState(torch.where(fixed.mask, inputs.tanh(), state.h))


@pytest.mark.parametrize("kind", [OneGateMore, ProductInGate, Normalised, LaterPass, Masked])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_users_own_cell_is_planned_without_a_word(kind: type, bidirectional: bool) -> None:
    rnn = model(f"{__name__}:{kind.__name__}", 5, 7, layers=2, bidirectional=bidirectional)
    assert {layer.engine.name for layer in rnn.engine_report().layers} == {"planned"}
    x, start = batch([6, 0, 1, 4], 5), random_states(rnn, 4)
    for every in (False, True):
        assert_agree(everything(rnn, "planned", x, start, every), everything(rnn, "loop", x, start, every))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Looks, "has no plan: its step depends on the values of a batch"),
        (AcrossRows, "has no plan: its step mixes rows"),
        (Sorts, "has no plan: its step uses aten.sort.default, which a row pass does not support"),
    ],
)
def test_a_cell_that_cannot_be_planned_runs_in_the_loop_and_says_why(kind: type, reason: str) -> None:
    rnn = Recurrent(f"{__name__}:{kind.__name__}", 3, 4)
    [layer] = rnn.engine_report().layers
    assert layer.engine.name == "loop"
    assert reason in str(rnn.engine_report())
    outputs, _ = rnn(Padded.full(torch.randn(2, 3, 3)))
    assert outputs.values.shape == (2, 3, 4)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (torch.zeros(1, 2, 3, dtype=torch.bfloat16), "it supports float32 and float64"),
        (torch.zeros(1, 2, 3, device="meta"), "it runs on the CPU, but the batch is on meta"),
        (torch.zeros(1, 0, 3), "there is no step to run"),
    ],
)
def test_what_the_engine_cannot_hold_is_refused(values: Tensor, reason: str) -> None:
    rnn = Recurrent("gru", 3, 4)
    layer = rnn._readers(0, rnn.start(1), rnn.fixed(1))
    refusal = Planned().refusal(layer, Padded(values, torch.tensor([values.shape[1]])))
    assert refusal is not None
    assert reason in refusal


@pytest.mark.parametrize("training", [True, False])
def test_float32_is_as_exact_as_the_loop(training: bool) -> None:
    """Against float64: no further away than four times the loop in float32, values from tiny to saturating."""
    for name in ("lstm", "peephole_lstm", "gru", "layer_norm_lstm", "slstm", "min_lstm"):
        rnn = Recurrent(name, 8, 16).train(training)
        x = torch.randn(4, 20, 8) * torch.logspace(-6, 1.5, 20).view(1, 20, 1)
        answers = {}
        for engine, dtype in (("loop", torch.float64), ("loop", torch.float32), ("planned", torch.float32)):
            rnn = rnn.to(dtype)
            rnn.engine = engine
            rnn.zero_grad()
            outputs, _ = rnn(Padded.full(x.to(dtype)))
            outputs.values.square().sum().backward()
            gradients = [p.grad.double() for p in rnn.parameters() if p.grad is not None]
            answers[engine, dtype] = [outputs.values.detach().double(), *gradients]
        exact = answers["loop", torch.float64]
        for truth, loop, planned in zip(
            exact, answers["loop", torch.float32], answers["planned", torch.float32], strict=True
        ):
            assert (planned - truth).norm() <= 4 * (loop - truth).norm() + 1e-6 * truth.norm(), name


@pytest.mark.parametrize("name", ["peephole_lstm", "gru", "min_gru"])
def test_threads_that_share_out_rows_or_columns_agree_with_the_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.c_run.WORTH_SHARING", 1)
    rnn = model(name, 3, 7, bidirectional=True)
    before = torch.get_num_threads()
    for rows in (1, 2, 30):
        x, start = batch([9 - row % 4 * 3 for row in range(rows)], 3), random_states(rnn, rows)
        expected = everything(rnn, "loop", x, start)
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            try:
                found = everything(rnn, "planned", x, start)
            finally:
                torch.set_num_threads(before)
            assert_agree(found, expected, engine=f"{threads} threads on {rows} rows")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("hidden", [1, 15, 16, 17, 40, 48, 100])
def test_products_of_any_size_agree_with_the_loop(dtype: torch.dtype, hidden: int) -> None:
    rnn = Recurrent("elman", 2, hidden).to(dtype)
    for rows in (1, 7, 8, 9, 21):
        x = Padded.full(torch.randn(rows, 3, 2, dtype=dtype))
        found = []
        for engine in ("planned", "loop"):
            rnn.engine = engine
            rnn.zero_grad()
            outputs, _ = rnn(x)
            outputs.values.sum().backward()
            found.append([outputs.values.detach(), *(p.grad for p in rnn.parameters())])
        for ours, theirs in zip(*found, strict=True):
            tolerance = 1e-4 if dtype == torch.float32 else 1e-10
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=tolerance, msg=f"{rows} rows: {{}}".format)


def test_gradients_from_outside_may_lie_anyhow_in_memory() -> None:
    rnn = model("gru", 3, 4)
    x = batch([5, 3])
    found: list[dict[str, Tensor]] = []
    for engine in ("planned", "loop"):
        rnn.engine = engine
        rnn.zero_grad()
        outputs, _ = rnn(x)
        outputs.values.sum().backward()  # an expanded gradient, without memory of its own
        rnn(x)[0].values.transpose(0, 2).mul(torch.arange(5.0).double().view(1, 5, 1)).sum().backward()
        found.append({name: p.grad.clone() for name, p in rnn.named_parameters() if p.grad is not None})
    assert_agree(found[0], found[1])


def test_a_cell_is_planned_under_hooks_on_saved_tensors_too() -> None:
    rnn = model("tests.engines.test_planned:OneGateMore", 3, 4, engine="planned")
    x = batch([5, 3])
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        outputs, _ = rnn(x)
    found = torch.autograd.grad(outputs.values.sum(), list(rnn.parameters()))
    rnn.engine = "loop"
    expected = torch.autograd.grad(rnn(x)[0].values.sum(), list(rnn.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


# The compiler and its cache.

SCRIPT = """
import warnings
warnings.simplefilter("always")
import torch, recurra
torch.manual_seed(0)
rnn = recurra.Recurrent("gru", 3, 4, engine="planned").double()
x = recurra.Padded(torch.randn(2, 5, 3).double(), torch.tensor([5, 2]))
outputs, _ = rnn(x); outputs.values.sum().backward()
rnn.engine = "loop"
expected, _ = rnn(x)
assert torch.allclose(outputs.values, expected.values, atol=1e-12), "wrong answer"
rnn(x); print("right")
"""


Script = Callable[..., Ended]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with forks(tmp_path_factory.mktemp("forks")) as found:
        yield found


@pytest.fixture(scope="module")
def run_script(processes: Forks) -> Script:
    """Runs the script in a process with this environment."""
    # Root may write anywhere: a cache that cannot be written is a path below a file.
    return lambda **environment: processes.wait(processes.start(SCRIPT, environment))


def test_without_a_compiler_the_answer_is_right_and_one_line_says_so(run_script: Script, tmp_path: Path) -> None:
    done = run_script(CC="no-such-compiler", RECURRA_CACHE=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert done.stderr.count("recurra: no C compiler was found") == 1


def test_a_compiler_may_have_a_launcher_and_arguments(run_script: Script, tmp_path: Path) -> None:
    launcher = tmp_path / "cc launcher"
    launcher.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\nexec "$@"\n')
    launcher.chmod(0o755)
    compiler = c_library.compiler()
    assert compiler is not None
    done = run_script(CC=f"'{launcher}' {compiler[0]} -DSOME=1", RECURRA_CACHE=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
    assert (tmp_path / "calls").read_text().startswith(f"{compiler[0]} -DSOME=1 -O3 ")


@pytest.mark.parametrize("command", ["", " ", "no-such-launcher gcc", "'gcc"])
def test_a_command_that_cannot_be_run_is_no_compiler(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", command)
    assert c_library.compiler.__wrapped__() is None


def test_a_compiler_that_fails_is_done_without(run_script: Script, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho cannot compile today >&2\nexit 1\n")
    broken.chmod(0o755)
    done = run_script(CC=str(broken), RECURRA_CACHE=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "failed: cannot compile today" in done.stderr


def test_a_cache_that_cannot_be_written_is_done_without(run_script: Script, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = run_script(RECURRA_CACHE=str(tmp_path / "file" / "cache"))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "cannot be used" in done.stderr
    assert "compiling for this process alone" in done.stderr


@pytest.fixture(scope="module")
def filled(run_script: Script, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache as the first run leaves it, to be copied: the libraries of the row passes and of the products."""
    folder = tmp_path_factory.mktemp("filled")
    assert run_script(RECURRA_CACHE=str(folder)).stdout == "right\n"
    return folder


def test_a_broken_library_in_the_cache_is_compiled_again(run_script: Script, filled: Path, tmp_path: Path) -> None:
    cache = shutil.copytree(filled, tmp_path / "cache")
    for library in cache.glob("*/*.so"):
        library.write_bytes(b"broken")
    done = run_script(RECURRA_CACHE=str(cache))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "is broken and is compiled again" in done.stderr
    again = run_script(RECURRA_CACHE=str(cache))
    assert (again.stdout, again.stderr) == ("right\n", "")


@pytest.mark.parametrize("what", ["passes", "products"])
def test_a_library_that_computes_something_else_is_not_trusted(
    what: str, run_script: Script, filled: Path, tmp_path: Path
) -> None:
    cache = shutil.copytree(filled, tmp_path / "cache")
    compiler = c_library.compiler()
    assert compiler is not None
    [library] = [path for path in cache.glob("*/*.so") if (b"panel_width" in path.read_bytes()) == (what == "products")]
    wrong = tmp_path / "wrong.c"
    names = [f"{direction}_{n}" for direction in ("forward", "inference", "backward") for n in range(2)]
    text = "".join(f"void {name}(void) {{}}\n" for name in ["run", *names])
    wrong.write_text(text + "long panel_width(void) { return 24; }\n")
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", str(library), str(wrong)], check=True)
    library.with_name(library.name + c_library.DIGEST).write_text(hashlib.sha256(library.read_bytes()).hexdigest())
    done = run_script(RECURRA_CACHE=str(cache))
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "differs from torch" in done.stderr


def test_two_processes_may_compile_at_once(processes: Forks, tmp_path: Path) -> None:
    started = [processes.start(SCRIPT, {"RECURRA_CACHE": str(tmp_path)}) for _ in range(2)]
    for number in started:
        assert processes.wait(number) == (0, "right\n", "")
    [folder] = tmp_path.iterdir()
    # The row passes and the products, each with its digest.
    assert sorted(path.suffix for path in folder.iterdir()) == [".sha256", ".sha256", ".so", ".so"]


def test_a_plan_is_compiled_once() -> None:
    compiled, plan = Compiled(), plan_of("elman")
    first = compiled.functions(plan, torch.float64)
    assert compiled.functions(plan, torch.float64) is first


def test_weights_of_half_precision_beside_a_batch_of_float32_are_refused_by_planned() -> None:
    rnn = Recurrent("gru", 3, 4).bfloat16()
    [reader] = rnn._readers(0, rnn.start(1), rnn.fixed(1))
    reason = Planned().refusal([reader], Padded.full(torch.zeros(1, 2, 3)))
    assert reason == "the weights of 'gru' have torch.bfloat16, but the batch has torch.float32"
