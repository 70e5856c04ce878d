"""Every engine gives the numbers of the loop: outputs, final states, and the gradient of everything."""

from __future__ import annotations

import functools
import os
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra import Padded, Recurrent
from recurra.engines import ENGINES, Vendor
from tests.engines.comparison import assert_agree, everything
from tests.variants import EVERY, batch, flat, model, random_states

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
FAST = [engine.name for engine in ENGINES if engine.name != "loop"]
ON_VENDOR = {
    "elman",
    "elman relu",
    "elman without bias",
    "elman weight drop",
    "lstm",
    "lstm without bias",
    "lstm weight drop",
    "gru after",
    "gru of torch",
    "gru after without bias",
    "gru weight drop",
}


def runs(engine: str, variant: str, training: bool) -> bool:
    """Whether an engine takes a variant by itself."""
    if engine == "planned":  # which takes all but one, and takes a while to say so
        return not variant.startswith("dnc")
    rnn = model(EVERY[variant]).train(training)
    [reader] = rnn._readers(0, rnn.start(1), rnn.fixed(1))
    found = next(each for each in ENGINES if each.name == engine)
    return found.refusal([reader], batch([4])) is None


@functools.cache
def runs_of(engine: str) -> list[tuple[str, str, bool]]:
    """What an engine takes: the engine, the variant, and whether it is trained; asked for when a test needs it."""
    return [(engine, variant, train) for variant in EVERY for train in (True, False) if runs(engine, variant, train)]


@pytest.mark.parametrize("variant", EVERY)
@pytest.mark.parametrize(
    ("training", "every"),
    [
        pytest.param(True, True, id="training, every state"),
        pytest.param(False, False, id="evaluation, last state"),
        pytest.param(True, False, id="training, last state", marks=pytest.mark.slow),
        pytest.param(False, True, id="evaluation, every state", marks=pytest.mark.slow),
    ],
)
def test_every_engine_that_does_not_refuse_agrees_with_the_loop(variant: str, training: bool, every: bool) -> None:
    rnn = model(EVERY[variant], 5, 6, layers=2, bidirectional=True).train(training)
    x, start = batch([7, 0, 1, 4, 7], 5), random_states(rnn, 5)
    refusals = [dict(layer.refusals) for layer in rnn.engine_report(x, every=every).layers]
    expected = everything(rnn, "loop", x, start, every)
    for engine in FAST:
        reasons = {each[engine] for each in refusals}
        if reasons == {None}:
            assert_agree(everything(rnn, engine, x, start, every), expected, engine=engine)
        else:
            assert all(reason and len(reason) > 15 for reason in reasons), engine


SHAPES = {
    "lengths": st.lists(st.integers(0, 9), min_size=1, max_size=6),
    "extra": st.integers(0, 2),
    "input_size": st.integers(1, 9),
    "hidden_size": st.sampled_from([1, 3, 8]),  # a compiled engine compiles once for each
    "layers": st.integers(1, 3),
    "ways": st.sampled_from(["forward", "backward", "both"]),
    "seed": st.integers(0, 10_000),
}


def check_agreement(
    run: tuple[str, str, bool],
    lengths: list[int],
    extra: int,
    input_size: int,
    hidden_size: int,
    layers: int,
    ways: str,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    engine, variant, training = run
    if "two heads" in variant or "unitary" in variant:
        hidden_size *= 2
    if "variables" in EVERY[variant]:
        input_size = max(3, input_size)  # a value, its mask and the elapsed time
    direction: dict[str, Any] = {"bidirectional": True} if ways == "both" else {"direction": ways}
    rnn = model(EVERY[variant], input_size, hidden_size, layers=layers, **direction).train(training)
    x, start = batch(lengths, input_size, extra), random_states(rnn, len(lengths))
    if not x.values.numel():
        engine = "auto"  # a batch without steps is the loop's
    assert_agree(everything(rnn, engine, x, start), everything(rnn, "loop", x, start))


@given(run=st.deferred(lambda: st.sampled_from(runs_of("vendor"))), **SHAPES)
def test_the_vendor_agrees_at_any_shape(run: tuple[str, str, bool], **shape: Any) -> None:
    check_agreement(run, **shape)


@given(run=st.deferred(lambda: st.sampled_from(runs_of("scan"))), **SHAPES)
def test_the_scan_agrees_at_any_shape(run: tuple[str, str, bool], **shape: Any) -> None:
    check_agreement(run, **shape)


@settings(max_examples=settings.get_profile(PROFILE).max_examples // 16)  # a new shape is compiled anew
@pytest.mark.parametrize("part", range(8))
@given(data=st.data(), **SHAPES)
def test_planned_steps_agree_at_any_shape(part: int, data: st.DataObject, **shape: Any) -> None:
    # To compile a memory network takes many seconds; it is held against the loop at one shape above.
    runs = [run for run in runs_of("planned") if not run[1].startswith("ntm")][part::8]
    check_agreement(data.draw(st.sampled_from(runs)), **shape)


@pytest.mark.parametrize("variant", EVERY)
def test_the_vendor_runs_what_torch_has_and_nothing_else(variant: str) -> None:
    rnn = model(EVERY[variant], bidirectional=True)
    layer = rnn._readers(0, rnn.start(2), rnn.fixed(2))
    assert (Vendor().refusal(layer, batch([4, 2])) is None) == (variant in ON_VENDOR)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("spec", ["lstm", {"name": "gru", "reset": "after"}, "elman"])
def test_the_vendor_agrees_with_the_loop_in_lower_precision(dtype: torch.dtype, spec: Any) -> None:
    rnn = Recurrent(spec, 16, 24, bidirectional=True).to(dtype)
    x = Padded(torch.randn(4, 9, 16).to(dtype), torch.tensor([9, 0, 5, 1]))
    answers = []
    for engine in ("vendor", "loop"):
        rnn.engine = engine
        outputs, states = rnn(x)
        answers.append([outputs.values, *flat(states)])
    for found, expected in zip(*answers, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=2e-6 if dtype is torch.float32 else 3e-2)


def test_a_held_cell_is_held_to_the_last_bit() -> None:
    rnn = Recurrent("lstm", 3, 4).double()
    x, start = batch([2, 0], extra=40), random_states(Recurrent("lstm", 3, 4).double(), 2)
    short = Padded(x.values[:, :2], x.lengths)
    (_, long_states), (_, short_states) = rnn(x, start), rnn(short, start)
    assert torch.equal(long_states[0][0].c[1], start[0][0].c[1])  # type: ignore[attr-defined]
    assert torch.equal(long_states[0][0].c, short_states[0][0].c)
