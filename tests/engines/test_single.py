"""A single row of an LSTM, read in one call of C, gives the numbers of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recurra import Padded, Recurrent
from recurra.engines import Single, c_library, single
from recurra.recurrent import States
from tests.variants import batch, flat, random_states

SPECS: dict[str, Any] = {
    "lstm": "lstm",
    "without bias": {"name": "lstm", "bias": False},
    "weight drop": {"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.3}]},
    "recurrent dropout": {"name": "lstm", "wrap": [{"name": "recurrent_dropout", "rate": 0.3}]},
}


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


@given(
    spec=st.sampled_from(sorted(SPECS)),
    length=st.integers(0, 9),
    extra=st.integers(0, 2),
    sizes=st.tuples(st.integers(1, 9), st.sampled_from([1, 3, 8, 15, 16, 17, 40])),
    layers=st.integers(1, 3),
    ways=st.sampled_from(["forward", "backward", "both"]),
    every=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_a_row_by_itself_agrees_with_the_loop(
    spec: str, length: int, extra: int, sizes: tuple[int, int], layers: int, ways: str, every: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    direction: dict[str, Any] = {"bidirectional": True} if ways == "both" else {"direction": ways}
    rnn = Recurrent(SPECS[spec], *sizes, layers=layers, **direction).double().eval()
    x, start = batch([length], sizes[0], extra), random_states(rnn, 1)
    engine = "single" if x.values.numel() else "auto"
    before = [field.clone() for field in flat(start)]
    pairs = zip(answers(rnn, engine, x, start, every), answers(rnn, "loop", x, start, every), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    for now, then in zip(flat(start), before, strict=True):
        assert torch.equal(now, then), "a state that was given is not written to"


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("size", [130, 370])
def test_the_number_of_threads_changes_nothing(count: int, ways: int, size: int) -> None:
    torch.manual_seed(1)
    rnn = Recurrent("lstm", 20, size, bidirectional=ways == 2, engine="single").eval()
    x = Padded.full(torch.randn(1, 40, 20))
    answered = []
    for number in (1, count):
        torch.set_num_threads(number)
        with torch.no_grad():
            outputs, states = rnn(x)
        answered.append([outputs.values, *flat(states)])
    for found, expected in zip(*answered, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


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
        return cell.engine_report(Padded.full(torch.zeros(rows, 5, 3))).layers[0].engine.name

    with torch.no_grad():
        assert taken(1) == "single"
        assert taken(2) == "vendor"
        assert taken(1, Recurrent("gru", 3, 4)) == "planned"
    assert taken(1) == "vendor"


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
    assert refusal("lstm") == "it has no way back, and gradients are recorded (torch.no_grad() would not)"
    with torch.no_grad():
        assert refusal("lstm") is None
        assert refusal("lstm", 2) == "it runs a single row, the batch has 2"
        assert refusal("gru") == "it runs an 'lstm', this is 'gru'"
        assert refusal({"name": "lstm", "candidate": "sigmoid"}) == (
            "its candidate is tanh, that of this one 'sigmoid'"
        )
        assert (
            refusal({"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.1}]}, training=True)
            == "it runs an 'lstm', this is 'zoneout'"
        )
        assert refusal("lstm", dtype=torch.bfloat16) == (
            "its steps compute in float32 and float64, the batch holds torch.bfloat16"
        )
        with torch.autocast("cpu"):
            assert refusal("lstm") == "its steps know one type of number, and autocast mixes two"
        layer = Recurrent("lstm", 3, 4)
        readers = layer._readers(0, layer.start(1), layer.fixed(1))
        assert Single().refusal(readers, Padded.full(torch.zeros(1, 0, 3))) == "there is no step to run"
        on_meta = Padded(torch.zeros(1, 5, 3, device="meta"), torch.tensor([5]))
        assert Single().refusal(readers, on_meta) == "its steps run on the CPU, the batch is on meta"


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
