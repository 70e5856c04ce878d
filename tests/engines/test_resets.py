"""Resets: a row that holds several sequences is read as if each were a row of its own, by every engine."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from recurra import Cell, DataError, EngineError, Padded, Recurrent
from recurra.cells.elman import ElmanState
from recurra.cells.weights import replaced
from recurra.engines import ENGINES
from recurra.engines.cost import work_of
from recurra.engines.resets import Resets
from recurra.stacks.recurrent import States
from tests.engines.comparison import assert_agree
from tests.variants import WRAPPED, flat, model, random_states

ON: dict[str, tuple[str, Any]] = {
    "loop, lstm": ("loop", "lstm"),
    "vendor, lstm": ("vendor", "lstm"),
    "vendor, gru": ("vendor", {"name": "gru", "reset": "after"}),
    "vendor, relu": ("vendor", {"name": "elman", "activation": "relu"}),
    "planned, lstm": ("planned", "lstm"),
    "planned, gru": ("planned", "gru"),
    "planned, peephole": ("planned", "peephole_lstm"),
    "planned, slstm": ("planned", "slstm"),
    "planned, min_lstm": ("planned", "min_lstm"),
    "planned, masked": ("planned", WRAPPED["gru variational"]),
    "scan, min_gru": ("scan", "min_gru"),
    "scan, ind_rnn": ("scan", {"name": "ind_rnn", "activation": "identity"}),
    "auto, gru": ("auto", "gru"),
}


def cut(lengths: list[int], resets: Tensor) -> list[list[range]]:
    """The steps of each sequence of each row."""
    found = []
    for row, length in enumerate(lengths):
        begins = [t for t in range(length) if t == 0 or resets[row, t]]
        ends = [*begins[1:], length]
        found.append([range(begin, end) for begin, end in zip(begins, ends, strict=False)])
    return found


def by_hand(rnn: Recurrent, x: Padded, start: States, resets: Tensor, fixed: Any) -> list[Tensor]:
    """Every layer read step by step, one sequence of one row at a time: outputs, and the final fields of all states."""
    y, finals = x.zeroed().values, []
    for number in range(len(rnn.cells)):
        directions = []
        for reader in rnn._readers(number, start, fixed):
            rows, lasts = [], []
            for row, sequences in enumerate(cut(x.lengths.tolist(), resets)):
                state = reader.cell.State(*(field[row : row + 1] for field in reader.state))
                own = one_row(reader.fixed, row)
                inputs, outputs = reader.cell.project(y[row : row + 1], own), {}
                for place, steps in enumerate(reversed(sequences) if reader.backward else sequences):
                    if place > 0 or (not reader.backward and resets[row, 0]):
                        state = reader.cell.start(1, y)
                    for t in reversed(steps) if reader.backward else steps:
                        state = reader.cell.step(inputs[:, t], state, own)
                        outputs[t] = state[0][0]
                nothing = y.new_zeros(reader.cell.hidden_size)
                rows.append(torch.stack([outputs.get(t, nothing) for t in range(y.shape[1])]))
                lasts.append(state)
            directions.append(torch.stack(rows))
            finals += [torch.cat(fields) for fields in zip(*lasts, strict=True)]
        y = torch.cat(directions, dim=-1)
    return [y, *finals]


def one_row(fixed: Any, row: int) -> Any:
    """With the masks of one row; no weight here has three rows, as the batch does."""
    return replaced(fixed, Tensor, lambda leaf: leaf[row : row + 1] if len(leaf) == 3 else leaf)  # type: ignore[type-var]


def gradients(answers: list[Tensor], sources: dict[str, Tensor]) -> dict[str, Tensor]:
    weights = torch.Generator().manual_seed(11)
    total = sum((answer * torch.randn(answer.shape, generator=weights).to(answer)).sum() for answer in answers)
    found = torch.autograd.grad(total, list(sources.values()), retain_graph=True, allow_unused=True)  # type: ignore[arg-type]
    named = zip(sources, found, strict=True)
    return {name: torch.zeros(()) if g is None else g for name, g in named}


def compare(rnn: Recurrent, engine: str, lengths: list[int], resets: Tensor) -> None:
    values = torch.randn(len(lengths), resets.shape[1], 5, dtype=torch.float64, requires_grad=True)
    x = Padded(values, torch.tensor(lengths))
    start = random_states(rnn, len(lengths))
    fields = [field.requires_grad_() for field in flat(start)]
    fixed = rnn.fixed(len(lengths), values)
    sources = {"x": values, **{f"start {n}": field for n, field in enumerate(fields)}, **dict(rnn.named_parameters())}
    rnn.engine = engine
    outputs, states = rnn(x, start, fixed=fixed, resets=resets)
    found = []
    for answers in ([outputs.values, *flat(states)], by_hand(rnn, x, start, resets, fixed)):
        named = {f"answer {number}": answer.detach() for number, answer in enumerate(answers)}
        found.append({**named, **gradients(answers, sources)})
    assert_agree(found[0], found[1], engine=engine)


RESETS = torch.tensor(
    [
        [0, 0, 1, 0, 1, 1, 0, 0],  # one of a single step
        [1, 0, 0, 0, 0, 1, 1, 1],  # what is given for the row is dropped; cuts on padding do not count
        [1, 1, 0, 1, 0, 0, 0, 0],  # a row without steps
    ],
    dtype=torch.bool,
)


@pytest.mark.parametrize("ways", ["both", "backward"])
@pytest.mark.parametrize("name", ON)
def test_each_sequence_is_read_as_if_it_were_alone(name: str, ways: str) -> None:
    engine, spec = ON[name]
    options: dict[str, Any] = {"bidirectional": True} if ways == "both" else {"direction": "backward"}
    rnn = model(spec, 5, 4, layers=2, **options)
    compare(rnn, engine, [8, 5, 0], RESETS)
    compare(rnn, engine, [8, 8, 8], RESETS)
    rnn.recompute = 3
    compare(rnn, engine, [8, 5, 0], RESETS)


@settings(max_examples=30)
@pytest.mark.parametrize("name", ["vendor, lstm", "planned, gru", "scan, min_gru"])
@given(lengths=st.lists(st.integers(0, 9), min_size=3, max_size=3), seed=st.integers(0, 10_000), ways=st.booleans())
def test_any_resets_are_those_of_rows_of_their_own(name: str, lengths: list[int], seed: int, ways: bool) -> None:
    engine, spec = ON[name]
    torch.manual_seed(seed)
    rnn = model(spec, 5, 4, bidirectional=ways)
    compare(rnn, engine if max(lengths) else "auto", lengths, torch.rand(3, max(*lengths, 1)) < torch.rand(()))


@pytest.mark.parametrize("name", ["vendor, gru", "planned, lstm", "scan, min_gru", "loop, lstm"])
def test_every_state_is_that_of_the_loop(name: str) -> None:
    engine, spec = ON[name]
    rnn = model(spec, 5, 4, bidirectional=True)
    x, start = Padded(torch.randn(3, 8, 5).double(), torch.tensor([8, 5, 0])), random_states(rnn, 3)
    rnn.engine = "loop"
    expected_outputs, expected = rnn(x, start, every=True, resets=RESETS)
    rnn.engine = engine
    outputs, found = rnn(x, start, every=True, resets=RESETS)
    for one, other in zip([outputs.values, *flat(found)], [expected_outputs.values, *flat(expected)], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("engine", ["single", "vendor", "planned", "auto"])
@pytest.mark.parametrize("length", [8, 6])
def test_a_single_row_without_gradients_is_that_of_the_loop(engine: str, length: int) -> None:
    rnn = model("lstm", 5, 4, layers=2, bidirectional=True).eval()
    x, start = Padded(torch.randn(1, 8, 5).double(), torch.tensor([length])), random_states(rnn, 1)
    for row in RESETS.split(1):
        for every in (False, True) if engine != "vendor" else (False,):
            with torch.no_grad():
                rnn.engine = "loop"
                expected = rnn(x, start, every=every, resets=row)
                rnn.engine = engine
                found = rnn(x, start, every=every, resets=row)
            pairs = zip([found[0].values, *flat(found[1])], [expected[0].values, *flat(expected[1])], strict=True)
            for one, other in pairs:
                torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 30])
def test_threads_that_share_out_rows_or_columns_agree(rows: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.c_run.WORTH_SHARING", 1)
    rnn, before = model("gru", 5, 7, bidirectional=True), torch.get_num_threads()
    x, resets = Padded.full(torch.randn(rows, 9, 5).double()), torch.rand(rows, 9) < 0.3
    found = []
    for rnn.engine in ("loop", "planned"):
        torch.set_num_threads(threads if rnn.engine == "planned" else before)
        try:
            outputs, _ = rnn(x, resets=resets)
            found.append([outputs.values, *torch.autograd.grad(outputs.values.square().sum(), list(rnn.parameters()))])
        finally:
            torch.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_without_a_compiler_torch_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.c_passes.Compiled.compile", lambda *_: None)
    compare(model("tests.engines.test_planned:OneGateMore", 5, 4, bidirectional=True), "planned", [8, 5, 0], RESETS)


@pytest.mark.parametrize("name", [name for name in ON if name != "loop, lstm"])
def test_second_derivatives_are_those_of_the_loop(name: str) -> None:
    engine, spec = ON[name]
    rnn = model(spec, 5, 4, bidirectional=True)
    values, found = torch.randn(3, 8, 5, dtype=torch.float64, requires_grad=True), []
    for rnn.engine in (engine, "loop"):
        torch.manual_seed(3)
        outputs, _ = rnn(Padded(values, torch.tensor([8, 5, 0])), resets=RESETS)
        [first] = torch.autograd.grad(outputs.values.square().sum(), values, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [values, *rnn.parameters()], allow_unused=True))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_resets_without_a_true_one_change_nothing() -> None:
    rnn, x = model("lstm", 5, 4, layers=2), Padded.full(torch.randn(1, 8, 5).double())
    with torch.no_grad():
        assert torch.equal(rnn(x, resets=torch.zeros(1, 8, dtype=torch.bool))[0].values, rnn(x)[0].values)


class Learned(Cell[ElmanState, tuple[()]]):
    """h' = tanh(W x + h), from a state that is learned."""

    State = ElmanState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)
        self.first = nn.Parameter(torch.randn(hidden_size))

    def start(self, rows: int, like: Tensor) -> ElmanState:
        return ElmanState(self.first.expand(rows, -1))

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: tuple[()]) -> ElmanState:
        return ElmanState(h=(inputs + state.h).tanh())


def test_a_learned_start_state_has_its_gradient_at_every_reset() -> None:
    rnn = model(f"{__name__}:Learned", 5, 4, bidirectional=True)
    compare(rnn, "auto", [8, 5, 0], RESETS)
    x = Padded.full(torch.randn(3, 8, 5).double())
    rnn.engine = "planned"
    with pytest.raises(EngineError, match="only the loop supports gradients of a learned start state with resets"):
        rnn(x, resets=RESETS)
    with torch.no_grad():
        found = rnn(x, resets=RESETS)[0].values
        rnn.engine = "loop"
        torch.testing.assert_close(found, rnn(x, resets=RESETS)[0].values, rtol=0, atol=1e-10)
    rnn.recompute = 2
    with pytest.raises(EngineError, match="recompute does not support the learned start state of"):
        rnn(x, resets=RESETS)


@pytest.mark.parametrize(
    ("resets", "found"),
    [
        (torch.zeros(2, 7, dtype=torch.bool), r"but is torch\.bool of shape \(2, 7\)"),
        (torch.zeros(2, 8), r"but is torch\.float32 of shape \(2, 8\)"),
        ([3, 4], r"but is \[3, 4\]"),
    ],
)
def test_resets_that_do_not_fit_are_refused_in_words(resets: Any, found: str) -> None:
    rnn = Recurrent("lstm", 5, 4)
    with pytest.raises(DataError, match=r"resets must be a tensor of torch\.bool of shape \(2, 8\) .*, " + found):
        rnn(Padded.full(torch.zeros(2, 8, 5)), resets=resets)


class FromOnes(Recurrent):
    """A stack that starts from ones."""

    def start(self, rows: int, like: Tensor | None = None) -> States:
        states = super().start(rows, like)
        return tuple(tuple(type(s)(*(torch.ones_like(field) for field in s)) for s in layer) for layer in states)


@pytest.mark.parametrize("spec", ["lstm", "min_gru", "gru"])
def test_a_stack_may_start_from_other_numbers(spec: str) -> None:
    rnn = FromOnes(spec, 5, 4, bidirectional=True).double()
    x = torch.randn(1, 7, 5).double()
    resets = torch.tensor([[False, False, True, False, False, False, False]])
    for engine in ("single", "vendor", "planned", "scan", "loop", "auto"):
        rnn.engine = engine
        with torch.no_grad():
            reasons = dict(rnn.engine_report(Padded.full(x)).layers[0].refusals)
            if engine == "vendor" and spec == "lstm":
                with pytest.raises(EngineError, match="torch's kernels can only reset the state to zeros, but this"):
                    rnn(Padded.full(x), resets=resets)
            elif engine == "auto" or reasons[engine] is None:
                found = rnn(Padded.full(x), resets=resets)[0].values
                alone = [rnn(Padded.full(part))[0].values for part in (x[:, :2], x[:, 2:])]
                torch.testing.assert_close(found, torch.cat(alone, dim=1), rtol=0, atol=1e-10)


def test_a_tanh_network_of_torch_refuses_in_words() -> None:
    rnn, x = Recurrent("elman", 5, 4, engine="vendor"), Padded.full(torch.randn(3, 8, 5))
    with pytest.raises(EngineError, match="torch's tanh RNN cannot reset its state to zeros within a"):
        rnn(x, resets=RESETS)


def test_the_vendor_is_estimated_to_read_one_more_step_for_each_reset() -> None:
    rnn, x = Recurrent("lstm", 64, 64), Padded.full(torch.zeros(4, 100, 64))
    few, many = torch.zeros(2, 4, 100, dtype=torch.bool).unbind()
    few[2, 50], many[1] = True, True
    works = []
    for mask in (few, many):
        layer = [r._replace(resets=Resets(mask, r.state)) for r in rnn._readers(0, rnn.start(4), rnn.fixed(4))]
        works.append(work_of(layer, x))
    assert [work.resets for work in works] == [1, 100]
    vendor = next(engine for engine in ENGINES if engine.name == "vendor")
    assert vendor.cost(works[1]) > 1.5 * vendor.cost(works[0])


def test_a_bfloat16_kernel_starts_anew_too() -> None:
    rnn = Recurrent("lstm", 5, 4, engine="vendor").bfloat16()
    x = torch.randn(1, 8, 5).bfloat16()
    resets = torch.tensor([[False, False, False, True, False, False, False, False]])
    found = rnn(Padded.full(x), resets=resets)[0].values
    alone = [rnn(Padded.full(part))[0].values for part in (x[:, :3], x[:, 3:])]
    torch.testing.assert_close(found, torch.cat(alone, dim=1), rtol=0, atol=0.01)
