"""What holds for every cell, option and wrapper in the folder, and for a user's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recurra import Padded, detached
from recurra.cells import Cell, Wrapper
from recurra.named import catalogue
from recurra.stacks.recurrent import Recurrent
from tests.variants import EVERY, batch, flat, model, random_states, rows_of

OWN: dict[str, dict[str, Any]] = {
    "own": {"name": "tests.own_cells:Matchbox", "gain": 0.5},
    "own wrapped": {
        "name": "tests.own_cells:Matchbox",
        "wrap": [{"name": "weight_drop", "rate": 0.3}, {"name": "zoneout", "rate": {"h": 0.2}}],
    },
}
ALL = {**EVERY, **OWN}
every_variant = pytest.mark.parametrize("variant", ALL)


def test_every_file_of_the_catalogue_is_among_the_variants() -> None:
    named = {spec["name"] for spec in EVERY.values()}
    wraps = {wrap["name"] for spec in EVERY.values() for wrap in spec.get("wrap", [])}
    assert named == set(catalogue(Cell))
    assert wraps == set(catalogue(Wrapper))


@every_variant
def test_padding_and_neighbours_change_nothing(variant: str) -> None:
    rnn = model(ALL[variant], layers=2, bidirectional=True).eval()
    lengths = [4, 0, 7, 1]
    together, start = batch(lengths, extra=2), random_states(rnn, 4)
    outputs, states = rnn(together, start)
    for row, length in enumerate(lengths):
        alone = Padded(together.values[row : row + 1, :length], together.lengths[row : row + 1])
        expected, final = rnn(alone, rows_of(start, [row]))
        torch.testing.assert_close(outputs.values[row : row + 1, :length], expected.values, rtol=0, atol=1e-12)
        assert (outputs.values[row, length:] == 0).all()
        for found, wanted in zip(flat(rows_of(states, [row])), flat(final), strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@every_variant
def test_gradients_of_padded_positions_are_exactly_zero_whatever_stands_there(variant: str) -> None:
    rnn = model(ALL[variant], layers=2, bidirectional=True, merge="projection")
    x = batch([4, 0, 2], extra=1)
    values = x.values.masked_fill(~x.mask.unsqueeze(-1), torch.nan).requires_grad_()
    outputs, states = rnn(Padded(values, x.lengths))
    (outputs.values.sum() + sum(field.sum() for field in flat(states))).backward()
    assert values.grad is not None
    assert (values.grad[~x.mask] == 0).all()
    assert (values.grad[x.mask] != 0).any()
    for name, parameter in rnn.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


@every_variant
def test_step_by_step_is_the_whole_sequence(variant: str) -> None:
    rnn = model(ALL[variant], layers=2, skip="highway", mix="concat", engine="loop").eval()
    x, start = batch([6, 6]), random_states(rnn, 2)
    outputs, states = rnn(x, start)
    now = start
    for t in range(6):
        y, now = rnn.step(x.values[:, t], now)
        torch.testing.assert_close(y, outputs.values[:, t], rtol=0, atol=1e-12)
    for found, wanted in zip(flat(now), flat(states), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@every_variant
def test_states_carried_over_chunks_give_the_whole(variant: str) -> None:
    rnn = model(ALL[variant], layers=2, engine="loop").eval()
    x = batch([7, 7, 7])
    whole, final = rnn(x)
    states, pieces = None, []
    for start, end in ((0, 3), (3, 4), (4, 7)):
        outputs, states = rnn(Padded.full(x.values[:, start:end]), states)
        pieces.append(outputs.values)
        states = detached(states)
    torch.testing.assert_close(torch.cat(pieces, 1), whole.values, rtol=0, atol=1e-12)
    assert states is not None
    for found, wanted in zip(flat(states), flat(final), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@every_variant
def test_a_backward_stack_is_a_forward_one_on_reversed_rows(variant: str) -> None:
    rnn = model(ALL[variant]).eval()
    x, start = batch([5, 0, 1, 3]), random_states(rnn, 4)
    outputs, states = rnn(x.reversed(), start)
    rnn.direction = "backward"
    mirrored, final = rnn(x, start)
    torch.testing.assert_close(mirrored.reversed().values, outputs.values, rtol=0, atol=1e-12)
    for found, wanted in zip(flat(final), flat(states), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@every_variant
def test_the_states_of_every_step_end_in_the_last(variant: str) -> None:
    rnn = model(ALL[variant], bidirectional=True).eval()
    x, start = batch([5, 1, 3]), random_states(rnn, 3)
    _, final = rnn(x, start)
    _, every = rnn(x, start, every=True)
    for way, (course, last) in enumerate(zip(every[0], final[0], strict=True)):
        for field, wanted in zip(course, last, strict=True):
            steps = [0, 0, 0] if way else [4, 0, 2]
            found = torch.stack([field[row, step] for row, step in enumerate(steps)])
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
            assert (field[~x.mask] == 0).all()


@every_variant
def test_weights_saved_and_loaded_compute_the_same(variant: str) -> None:
    rnn, other = (model(ALL[variant], layers=2, engine="loop").eval() for _ in range(2))
    other.load_state_dict(rnn.state_dict())
    x = batch([4, 2])
    assert torch.equal(rnn(x)[0].values, other(x)[0].values)


@every_variant
@pytest.mark.parametrize(("rows", "steps"), [(2, 0), (0, 3), (0, 0)])
def test_a_batch_without_steps_or_rows_is_answered(variant: str, rows: int, steps: int) -> None:
    rnn = model(ALL[variant], bidirectional=True, engine="loop")
    x = Padded(torch.zeros(rows, steps, 3).double(), torch.full((rows,), steps))
    start = random_states(rnn, rows)
    outputs, states = rnn(x, start)
    assert outputs.values.shape == (rows, steps, 8)
    for found, wanted in zip(flat(states), flat(start), strict=True):
        assert torch.equal(found, wanted) or rows == 0
    assert len(rnn.parts(x, start)[0]) == 2


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    extra=st.integers(0, 3),
    order=st.randoms(use_true_random=False),
    variant=st.sampled_from(sorted(ALL)),
    layers=st.integers(1, 2),
    bidirectional=st.booleans(),
)
def test_rows_in_any_order_with_any_padding_give_the_same(
    lengths: list[int], extra: int, order: Any, variant: str, layers: int, bidirectional: bool
) -> None:
    torch.manual_seed(len(lengths))
    rnn = model(ALL[variant], layers=layers, bidirectional=bidirectional, engine="loop").eval()
    x, start = batch(lengths, extra=extra), random_states(rnn, len(lengths))
    outputs, states = rnn(x, start)
    rows = list(range(len(lengths)))
    order.shuffle(rows)
    shuffled = Padded(x.values[rows, : max(lengths)], x.lengths[rows])
    again, final = rnn(shuffled, rows_of(start, rows))
    torch.testing.assert_close(again.values, outputs.values[rows, : max(lengths)], rtol=0, atol=1e-12)
    for found, wanted in zip(flat(final), flat(rows_of(states, rows)), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@every_variant
def test_a_stack_starts_from_the_same_weights_with_the_same_seed(variant: str) -> None:
    def make() -> Recurrent:
        torch.manual_seed(5)
        return Recurrent(ALL[variant], 3, 4)

    assert all(torch.equal(a, b) for a, b in zip(make().parameters(), make().parameters(), strict=True))
