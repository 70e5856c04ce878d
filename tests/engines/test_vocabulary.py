"""What a step may be made of: every step function of steps.py is planned, and agrees with the loop."""

from __future__ import annotations

import ctypes
import functools
import math
import warnings

import pytest
import torch

from recurra import Padded, Recurrent
from recurra.engines.c_library import library
from recurra.engines.c_prelude import prelude
from recurra.engines.c_source import FUNCTIONS
from recurra.engines.memory import TORCH
from recurra.engines.plan import CHEAP
from recurra.engines.planning import made
from recurra.engines.values import Value, moved, runs_of
from recurra.engines.vocabulary import POINTWISE
from tests.engines.comparison import assert_agree, everything
from tests.engines.steps import HEADS, REFUSED, STEPS, Steps
from tests.variants import batch, model, random_states


def groups(names: list[str], count: int, size: int) -> list[tuple[list[str], int]]:
    return [(names[start : start + count], size) for start in range(0, len(names), count)]


GROUPS = groups(list(STEPS), 11, 7) + groups(list(HEADS), 8, 15)
"""Steps are planned and compiled several at once, for a compiler takes its time to start."""

TOLERANCE = {"hardsigmoid": 1e-6}
"""torch itself divides by 6 in float32 here, whatever the type."""


@functools.cache
def stack(group: int, dtype: torch.dtype) -> Recurrent:
    """One for all tests, for so it is planned once."""
    names, size = GROUPS[group]
    return model({"name": "tests.engines.steps:Steps", "names": names}, 3, size).to(dtype)


def single(group: int) -> object:
    """In float32 the C is the same but for the type, and its functions are tested in both; most groups can wait."""
    return pytest.param(group, torch.float32, marks=[pytest.mark.slow] if group else [])


@pytest.mark.parametrize(
    ("group", "dtype"),
    [*((group, torch.float64) for group in range(len(GROUPS))), *(single(group) for group in range(len(GROUPS)))],
)
def test_steps_are_planned_and_agree_with_the_loop(group: int, dtype: torch.dtype) -> None:
    rnn, (names, _) = stack(group, dtype), GROUPS[group]
    x, start = batch([5, 0, 3]), random_states(rnn, 3)
    [[state]] = start
    x, start = Padded(x.values.to(dtype), x.lengths), ((type(state)(*(field.to(dtype) for field in state)),),)
    expected = everything(rnn, "loop", x, start)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # compiled passes that torch would not confirm are left aside with a notice
        found = everything(rnn, "planned", x, start)
    exact = max(TOLERANCE.get(name, 1e-10) for name in names)
    assert_agree(found, expected, exact if dtype == torch.float64 else 1e-4, engine=f"{names}")
    with torch.no_grad():
        answers = [rnn(x, start, every=True)]
        rnn.engine = "loop"
        answers.append(rnn(x, start, every=True))
    for ours, theirs in zip(*([outputs.values, *states[0][0]] for outputs, states in answers), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 if dtype == torch.float32 else 1e-9)


EXTREME = [0.0, -0.0, 1e-30, -1e-30, 20.0, -20.0, 90.0, -90.0, 1e4, -1e4, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("group", range(3), ids=[names[0] for names, _ in GROUPS[:3]])
def test_extreme_inputs_give_what_torch_gives(group: int) -> None:
    rnn, (names, _) = stack(group, torch.float64), GROUPS[group]
    cell = next(module for module in rnn.modules() if isinstance(module, Steps))
    with torch.no_grad():
        cell.W.bias.zero_()
        cell.W.weight.copy_(torch.tensor([1.0, 0.0, 0.0]).expand_as(cell.W.weight))
        cell.own.U.bias.zero_()
    # One number each, for not to be a number spreads; and one step, for sums of such numbers have no right order.
    for number in EXTREME:
        x = torch.zeros(1, 1, 3).double()
        x[..., 0] = number
        found = []
        for engine in ("planned", "loop"):
            rnn.engine = engine
            rnn.zero_grad()
            values = x.clone().requires_grad_()
            _, states = rnn(Padded.full(values), every=True)
            torch.stack(list(states[0][0])).sum().backward()
            found.append([*states[0][0], values.grad])
        for ours, theirs, name in zip(*found, [*names, "the gradient"], strict=True):
            where = f"{name} of {number}: {{}}".format
            torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-12, equal_nan=True, msg=where)


# The functions themselves.


@functools.cache
def functions(is_double: bool) -> ctypes.CDLL:
    loops = (
        f"void all_{name}(long n, const real *a, const real *b, const real *c, real *out) {{\n"
        f"#pragma omp simd\n    for (long j = 0; j < n; j++) out[j] = {code.format('a[j]', 'b[j]', 'c[j]')};\n}}"
        for name, code in FUNCTIONS.items()
    )
    return library("\n".join([prelude(is_double), *loops]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_function_in_c_is_torchs_at_the_ends_and_between(dtype: torch.dtype) -> None:
    largest, tiny = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal
    numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, largest, -largest, tiny, -tiny, 1e4, -1e4]
    numbers += [0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 0.1, -0.7, 3.0, 7.3, -7.3, 30.0, -30.0]
    grid = torch.cartesian_prod(*[torch.tensor(numbers, dtype=dtype)] * 2)
    a, b = (column.contiguous() for column in grid.unbind(1))
    for name in FUNCTIONS:
        function, out = getattr(functions(dtype == torch.float64), f"all_{name}"), torch.empty_like(a)
        mask = (b > 0).to(dtype)
        given = [mask, a, b] if name == "where" else [a, b, b]
        function(ctypes.c_long(len(a)), *(ctypes.c_void_p(each.data_ptr()) for each in [*given, out]))
        expected = TORCH[name](*given[: TWO.get(name, 1)])
        torch.testing.assert_close(
            out,
            expected,
            equal_nan=True,
            rtol=2e-6 if dtype == torch.float32 else 1e-14,
            atol=2 * tiny,
            msg=f"{name}: {{}}".format,
        )


TWO = dict.fromkeys(("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"), 2)
TWO |= dict.fromkeys(("and", "or", "pow", "atan2"), 2) | {"where": 3}


def test_c_and_torch_know_the_same_functions() -> None:
    assert FUNCTIONS.keys() == TORCH.keys() == set(POINTWISE.values())
    assert CHEAP - {"leaf", "constant", "move"} <= TORCH.keys()


# Moves.


def test_runs_put_every_number_where_it_belongs() -> None:
    generator = torch.Generator().manual_seed(0)
    index = torch.arange(24).view(2, 3, 4)
    orders = [index.permute(2, 0, 1), index.flip(1), index[:, ::2], index[..., 1:4], index[:, :, :1].expand(2, 3, 9)]
    orders += [torch.randint(24, (width,), generator=generator) for width in range(1, 12)]
    orders += [index.roll(7).transpose(0, 2), torch.stack([index, index.flip(2)], dim=-1)]
    for order in orders:
        places = order.flatten()
        for sources in (torch.zeros_like(places), places % 2, places // 10):
            found = torch.full((len(places), 2), -1)
            for run in runs_of(sources, places):
                j = torch.arange(run.length)
                found[run.start + run.step * j] = torch.stack(
                    [torch.full_like(j, run.source), run.offset + run.stride * j], dim=1
                )
            assert torch.equal(found, torch.stack([sources, places], dim=1))


def test_a_move_of_a_move_is_one_move() -> None:
    x, y = Value("leaf", (), 3, "x"), Value("leaf", (), 2, "y")
    both = moved([x, y], torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 2, 0, 1]))
    assert both.values == (x, y)
    assert moved([both], torch.zeros(3).long(), torch.arange(3)) is x
    crossed = moved([both], torch.zeros(2).long(), torch.tensor([4, 0]))
    assert [(crossed.values[run.source], run.offset) for run in crossed.detail.runs] == [(y, 1), (x, 0)]


# What has no plan.


@pytest.mark.parametrize("name", REFUSED)
def test_a_step_without_a_plan_is_refused_in_words(name: str) -> None:
    reason = made(Steps(3, 7, names=[name]).double(), torch.zeros(1, 2, 3).double()).plan
    assert isinstance(reason, str)
    assert REFUSED[name][1] in reason


def test_a_step_that_takes_a_row_into_too_many_pieces_is_refused() -> None:
    reason = made(Steps(3, 300, names=["outer and back"]), torch.zeros(1, 2, 3)).plan
    assert isinstance(reason, str)
    assert "its step splits a row into 300 pieces, but a row pass supports at most 64" in reason


@pytest.mark.parametrize("size", [15, 20, 24, 26, 221])
def test_no_size_of_a_weight_is_mistaken_for_the_number_of_rows(size: int) -> None:
    assert not isinstance(made(Steps(3, size, names=["joined weights"]), torch.zeros(1, 2, 3)).plan, str)


def test_weights_of_another_type_are_refused() -> None:
    cell = Steps(3, 7, names=["gelu"]).double()
    cell.own.U.float()
    reason = made(cell, torch.zeros(1, 2, 3).double()).plan
    assert isinstance(reason, str)
    assert "its step cannot be traced" in reason
