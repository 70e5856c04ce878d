"""A single row of an LSTM, read in one call of C, gives the numbers of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import forward_ad

from recurra import Padded, Recurrent
from recurra.engines import Single, c_library, c_row, single
from recurra.stacks.recurrent import States
from tests.variants import batch, flat, random_states

SPECS: dict[str, Any] = {
    "lstm": "lstm",
    "without bias": {"name": "lstm", "bias": False},
    "weight drop": {"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.3}]},
    "recurrent dropout": {"name": "lstm", "wrap": [{"name": "recurrent_dropout", "rate": 0.3}]},
}


SIZES = st.tuples(st.sampled_from([1, 3, 8, 9, 15, 17, 33]), st.sampled_from([1, 3, 8, 15, 16, 17, 40]))
WAYS = st.sampled_from(["forward", "backward", "both"])


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def answers(rnn: Recurrent, engine: str, x: Padded, start: States, every: bool) -> list[torch.Tensor]:
    rnn.engine = engine
    with torch.no_grad():
        outputs, states = rnn(x, start, every=every)
    return [outputs.values, *flat(states)]


def direction(ways: str) -> dict[str, Any]:
    return {"bidirectional": True} if ways == "both" else {"direction": ways}


@given(
    spec=st.sampled_from(sorted(SPECS)),
    length=st.integers(0, 9),
    extra=st.integers(0, 2),
    sizes=SIZES,
    layers=st.integers(1, 3),
    ways=WAYS,
    every=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_a_row_by_itself_agrees_with_the_loop(
    spec: str, length: int, extra: int, sizes: tuple[int, int], layers: int, ways: str, every: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    rnn = Recurrent(SPECS[spec], *sizes, layers=layers, **direction(ways)).double().eval()
    x, start = batch([length], sizes[0], extra), random_states(rnn, 1)
    engine = "single" if x.values.numel() else "auto"
    before = [field.clone() for field in flat(start)]
    pairs = zip(answers(rnn, engine, x, start, every), answers(rnn, "loop", x, start, every), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for now, then in zip(flat(start), before, strict=True):
        assert torch.equal(now, then), "a state that was given is not written to"


@given(
    has_bias=st.booleans(),
    length=st.integers(1, 60),
    sizes=SIZES,
    widths=st.lists(st.sampled_from([1, 7, 16, 20]), min_size=1, max_size=3),
    ways=WAYS,
    is_double=st.booleans(),
)
def test_a_row_through_all_layers_at_once_agrees_with_the_loop(
    has_bias: bool, length: int, sizes: tuple[int, int], widths: list[int], ways: str, is_double: bool
) -> None:
    torch.manual_seed(length)
    rnn = (
        Recurrent({"name": "lstm", "bias": has_bias}, sizes[0], [*widths, sizes[1]], **direction(ways)).double().eval()
    )
    x = Padded.full(torch.randn(1, length, sizes[0], dtype=torch.float64))
    rnn.engine = "loop"
    with torch.no_grad():
        expected, expected_states = rnn(x)
        rnn = rnn.to(torch.float64 if is_double else torch.float32)
        values = x.values.to(torch.float64 if is_double else torch.float32)
        assert Single().reads_stack(rnn._layers(), Padded.full(values))
        found, states = Single().run_stack(rnn._layers(), values, rnn._ways())
    pairs = zip([found, *flat(states)], [expected.values, *flat(expected_states)], strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one.double(), other, rtol=0, atol=1e-10 if is_double else 1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"merge": "sum", "bidirectional": True},
        {"mix": "concat"},
        {"skip": "residual"},
        {"skip": "highway"},
        {"engine": "vendor"},
    ],
    ids=str,
)
def test_a_stack_that_does_more_than_to_read_goes_layer_by_layer(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    rnn = Recurrent("lstm", 5, 5, layers=2, **options).double().eval()
    x = batch([6], 5)
    counted = calls_of_run_stack(monkeypatch)
    with torch.no_grad():
        found, states = rnn(x)
        assert not counted
        rnn.engine = "loop"
        expected, expected_states = rnn(x)
    for one, other in zip([found.values, *flat(states)], [expected.values, *flat(expected_states)], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def calls_of_run_stack(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One more for each row that was read by a whole stack at once."""
    counted: list[int] = []
    run_stack = Single.run_stack

    def counting(*given: Any) -> Any:
        counted.append(1)
        return run_stack(*given)

    monkeypatch.setattr(Single, "run_stack", counting)
    return counted


@pytest.mark.parametrize("engine", ["auto", "single"])
def test_a_plain_stack_goes_through_at_once_where_it_starts_from_nothing(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rnn = Recurrent("lstm", 5, 5, layers=2, bidirectional=True, dropout=0.5, engine=engine).eval()
    x, counted = Padded.full(torch.randn(1, 6, 5)), calls_of_run_stack(monkeypatch)
    with torch.no_grad():
        _, states = rnn(x)
        assert len(counted) == 1
        rnn(x, states)
        rnn(x, every=True)
        rnn(Padded(x.values, torch.tensor([4])))
    assert len(counted) == 1


class Learned(Recurrent):
    """A stack with first states of its own."""

    def start(self, rows: int, like: torch.Tensor | None = None) -> States:
        return tuple(
            tuple(type(state)(*(field + 1 for field in state)) for state in layer)
            for layer in super().start(rows, like)
        )


class Doubled(torch.nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(input)


def of_a_class_of_its_own(cell: Any) -> None:
    cell.from_input = Doubled(20, 32).double()


def hooked(cell: Any) -> None:
    cell.from_input.register_forward_hook(lambda module, given, found: found + 1)


def weighed(cell: Any) -> None:
    torch.nn.utils.parametrizations.weight_norm(cell.from_input).parametrizations.weight.original0.data.mul_(2)


def biased_by_a_temporary(cell: Any) -> None:
    torch.nn.utils.parametrize.register_parametrization(cell.from_input, "bias", torch.nn.Softplus())


@pytest.mark.parametrize("change", [of_a_class_of_its_own, hooked, weighed, biased_by_a_temporary])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
def test_what_is_hung_on_the_product_with_the_inputs_counts(change: Any, every: bool, rows: int) -> None:
    torch.manual_seed(6)
    rnn = Recurrent("lstm", 20, 8).double().eval()
    change(rnn.cells[0][0])  # type: ignore[index]
    x, start = batch([5] * rows, 20), random_states(rnn, rows)
    pairs = zip(answers(rnn, "auto", x, start, every), answers(rnn, "loop", x, start, every), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    with torch.no_grad():
        report = str(rnn.engine_report(x))
    is_said = "W directly, but `from_input` has hooks or a custom `forward`" in report
    assert is_said == (change in (of_a_class_of_its_own, hooked))


def refusal_of(rnn: Recurrent, x: Padded) -> str | None:
    with torch.no_grad():
        return Single().refusal(rnn._readers(0, rnn.start(1, x.values), rnn.fixed(1, x.values)), x)


def test_a_bias_that_does_not_lie_in_one_piece_is_read_as_it_is() -> None:
    rnn = Recurrent("lstm", 20, 8).double().eval()
    rnn.cells[0][0].from_input.bias = torch.nn.Parameter(torch.randn(64).double()[::2])  # type: ignore[index]
    x, start = batch([5], 20), random_states(rnn, 1)
    for every in (False, True):
        pairs = zip(answers(rnn, "single", x, start, every), answers(rnn, "loop", x, start, every), strict=True)
        for found, expected in pairs:
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_weights_that_are_not_like_the_inputs_are_refused_and_not_misread() -> None:
    x = Padded.full(torch.randn(1, 6, 5))
    mixed = Recurrent("lstm", 5, 4, layers=2)
    mixed.cells[1].double()
    elsewhere = Recurrent("lstm", 5, 4).to("meta")
    with torch.no_grad():
        for rnn in (mixed, elsewhere):
            with pytest.raises(RuntimeError):
                rnn(x)
        assert refusal_of(elsewhere, x) == "it runs on the CPU, but a weight is on meta"
        wide = Recurrent("lstm", 5, 4).double()
        assert refusal_of(wide, x) == ("it needs one dtype, but the batch has torch.float32 and a weight torch.float64")


def test_first_states_of_a_stack_of_ones_own_count() -> None:
    torch.manual_seed(7)
    rnn, x = Learned("lstm", 5, 4).eval(), Padded.full(torch.randn(1, 6, 5))
    with torch.no_grad():
        found, _ = rnn(x)
        expected, _ = rnn(x, rnn.start(1))
    torch.testing.assert_close(found.values, expected.values, rtol=0, atol=0)


def test_states_do_not_share_their_memory() -> None:
    rnn, weight = Recurrent("lstm", 5, 4, bidirectional=True).eval(), torch.ones(4, requires_grad=True)
    with torch.no_grad():
        _, states = rnn(Padded.full(torch.randn(1, 6, 5)))
    forward, backward = states[0]
    total = (forward[0] * weight).sum()
    backward[0].zero_()
    forward[1].zero_()
    total.backward()
    assert torch.equal(weight.grad, forward[0][0])  # type: ignore[arg-type]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("size", [130, 370])
def test_threads_that_do_each_others_part_change_not_a_bit(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(8)
    rnn, x = Recurrent("lstm", 20, size).eval(), Padded.full(torch.randn(1, 40, 20))
    with torch.no_grad():
        torch.set_num_threads(1)
        expected, _ = rnn(x)
        impatient = c_row.TEXT.replace("#define PATIENCE 4000", "#define PATIENCE 0")
        assert impatient != c_row.TEXT
        monkeypatch.setattr(single, "TEXT", impatient)
        single.compiled.cache_clear()
        try:
            torch.set_num_threads(3)
            for _ in range(20):
                found, _ = rnn(x)
                torch.testing.assert_close(found.values, expected.values, rtol=0, atol=0)
        finally:
            single.compiled.cache_clear()


def test_dropout_between_layers_is_not_passed_by() -> None:
    torch.manual_seed(4)
    rnn = Recurrent("lstm", 5, 40, layers=2, dropout=0.5).train()
    x = Padded.full(torch.randn(1, 6, 5))
    with torch.no_grad():
        first, second = (rnn(x)[0].values for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own, at the first dual number
@pytest.mark.parametrize("name", ["lstm", "gru", "min_gru"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("records", [False, True])
def test_tangents_of_forward_mode_come_through(name: str, rows: int, records: bool) -> None:
    torch.manual_seed(5)
    rnn = Recurrent(name, 3, 4, bidirectional=True).double().eval()
    x, change = torch.randn(2, rows, 7, 3, dtype=torch.float64)
    with torch.set_grad_enabled(records), forward_ad.dual_level():
        outputs, _ = rnn(Padded.full(forward_ad.make_dual(x, change)))
        found = forward_ad.unpack_dual(outputs.values).tangent
        assert found is not None
    with torch.no_grad():
        after, before = (rnn(Padded.full(x + side * 1e-6 * change))[0].values for side in (1, -1))
    torch.testing.assert_close(found.detach(), (after - before) / 2e-6, rtol=0, atol=1e-8)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("size", [130, 370])
@pytest.mark.parametrize("inputs", [20, 200])
def test_the_number_of_threads_changes_not_a_bit(count: int, ways: int, size: int, inputs: int) -> None:
    """More threads than cores, too: some are then sent away in the middle of a step, and others do their part."""
    torch.manual_seed(1)
    rnn = Recurrent("lstm", inputs, size, bidirectional=ways == 2, engine="single").eval()
    x = Padded.full(torch.randn(1, 40, inputs))
    for every in (False, True):
        answered = []
        for number in (1, count):
            torch.set_num_threads(number)
            with torch.no_grad():
                outputs, states = rnn(x, every=every)
            answered.append([outputs.values, *flat(states)])
        for found, expected in zip(*answered, strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_float32_agrees_with_the_loop_in_float64() -> None:
    torch.manual_seed(2)
    rnn = Recurrent("lstm", 30, 64, bidirectional=True).eval()
    x = Padded.full(torch.randn(1, 50, 30))
    rnn.engine = "single"
    with torch.no_grad():
        found, _ = rnn(x)
        exact = rnn.double()
        exact.engine = "loop"
        expected, _ = exact(Padded(x.values.double(), x.lengths))
    assert (found.values.double() - expected.values).abs().max() < 1e-6


def test_it_is_taken_for_one_row_without_gradients_and_for_nothing_else() -> None:
    rnn = Recurrent("lstm", 3, 4)

    def taken(rows: int, cell: Recurrent = rnn) -> str:
        return cell.engine_report(Padded.full(torch.zeros(rows, 40, 3))).layers[0].engine.name

    with torch.no_grad():
        assert taken(1) == "single"
        assert taken(2) == "vendor"
        assert taken(1, Recurrent("gru", 3, 4)) == "planned"
    assert taken(1) != "single"


def test_weights_that_have_changed_are_read_as_they_now_are() -> None:
    rnn = Recurrent("lstm", 3, 4).double().eval()
    x, start = batch([6], 3), random_states(rnn, 1)
    answers(rnn, "single", x, start, False)
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.mul_(1.5)
    found, expected = (answers(rnn, engine, x, start, False)[0] for engine in ("single", "loop"))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def refusal(spec: Any, rows: int = 1, *, training: bool = False, dtype: torch.dtype = torch.float32) -> str | None:
    rnn = Recurrent(spec, 3, 4).to(dtype).train(training)
    layer = rnn._readers(0, rnn.start(rows), rnn.fixed(rows))
    return Single().refusal(layer, Padded.full(torch.zeros(rows, 5, 3, dtype=dtype)))


def test_every_refusal_says_why() -> None:
    assert refusal("lstm") == "inference only, but gradients are enabled (use torch.no_grad())"
    with torch.no_grad():
        assert refusal("lstm") is None
        assert refusal("lstm", 2) == "it runs a batch of one row, but this batch has 2"
        assert refusal("gru") == "it runs only 'lstm', but this is 'gru'"
        assert refusal({"name": "lstm", "candidate": "sigmoid"}) == (
            "it supports only a tanh candidate, but this cell has 'sigmoid'"
        )
        assert (
            refusal({"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.1}]}, training=True)
            == "it runs only 'lstm', but this is 'zoneout'"
        )
        assert refusal("lstm", dtype=torch.bfloat16) == (
            "it supports float32 and float64, but the batch has torch.bfloat16"
        )
        with torch.autocast("cpu"):
            assert refusal("lstm") == "it needs one dtype, but autocast mixes two"
        layer = Recurrent("lstm", 3, 4)
        readers = layer._readers(0, layer.start(1), layer.fixed(1))
        assert Single().refusal(readers, Padded.full(torch.zeros(1, 0, 3))) == "there is no step to run"
        with forward_ad.dual_level():
            assert refusal("lstm") == "only the loop supports forward-mode differentiation"
        on_meta = Padded(torch.zeros(1, 5, 3, device="meta"), torch.tensor([5]))
        assert Single().refusal(readers, on_meta) == "it runs on the CPU, but the batch is on meta"


def test_without_a_compiler_another_engine_runs_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(_: str) -> None:
        raise c_library.NoCompiler("no C compiler was found")

    single.compiled.cache_clear()
    monkeypatch.setattr(single, "library", no_compiler)
    with torch.no_grad():
        assert refusal("lstm") == "it has no compiled steps: no C compiler was found"
        report = Recurrent("lstm", 3, 4).engine_report(Padded.full(torch.zeros(1, 5, 3)))
    assert report.layers[0].engine.name == "vendor"
    single.compiled.cache_clear()
