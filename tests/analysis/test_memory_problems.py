"""Problems for an external memory: what is due follows from what is read, and an NTM copies beyond its training."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

from recurra.analysis.memory_problems import (
    NOTHING,
    AssociativeRecall,
    BitNetwork,
    CopyBits,
    RepeatCopy,
    learn_bits,
    loss_of_bits,
    right_bits,
)

LENGTHS = st.integers(1, 6)


@given(LENGTHS, LENGTHS, st.integers(0, 99))
def test_a_copy_is_due_after_the_mark(longest: int, shortest: int, seed: int) -> None:
    x, target = CopyBits(longest, min(shortest, longest), bits=3).draw(4, Generator().manual_seed(seed))
    for row, due in zip(x.values.tolist(), target.tolist(), strict=True):
        mark = [step[-1] for step in row].index(1)
        assert min(shortest, longest) <= mark <= longest
        assert len(row) == 2 * mark + 1
        assert due[: mark + 1] == [[NOTHING] * 3] * (mark + 1)
        assert due[mark + 1 :] == [step[:-1] for step in row[:mark]]
        assert all(not any(step) for step in row[mark + 1 :])


@given(LENGTHS, st.integers(1, 4), st.integers(0, 99))
def test_copies_are_due_as_often_as_the_number_says_and_then_an_end(steps: int, times: int, seed: int) -> None:
    x, target = RepeatCopy(steps, steps, bits=2, times=times).draw(3, Generator().manual_seed(seed))
    for row, due, length in zip(x.values.tolist(), target.tolist(), x.lengths.tolist(), strict=True):
        often = round(row[steps][-1] * times)
        assert 1 <= often <= times
        assert length == steps + 2 + often * steps
        once = [[*step[:2], 0.0] for step in row[:steps]]
        assert due[steps + 1 : length] == [*once * often, [0.0, 0.0, 1.0]]
        assert all(step == [NOTHING] * 3 for step in [*due[: steps + 1], *due[length:]])


@given(st.integers(2, 6), st.integers(0, 99))
def test_the_item_after_the_one_that_is_shown_again_is_due(count: int, seed: int) -> None:
    x, target = AssociativeRecall(count, count, bits=12).draw(3, Generator().manual_seed(seed))
    for row, due in zip(x.values, target, strict=True):
        items = [row[4 * number + 1 : 4 * number + 4, :12] for number in range(count)]
        asked = row[4 * count + 1 : 4 * count + 4, :12]
        [place] = [number for number, item in enumerate(items[:-1]) if torch.equal(item, asked)]
        assert torch.equal(due[-3:], items[place + 1])
        assert (due[:-3] == NOTHING).all()


def test_only_bits_that_are_due_are_counted() -> None:
    target = torch.tensor([[[NOTHING, NOTHING], [1.0, 0.0]]])
    outputs = torch.tensor([[[50.0, -50.0], [0.0, 0.0]]])
    assert float(loss_of_bits(outputs, target)) == pytest.approx(math.log(2))
    assert right_bits(torch.tensor([[[-1.0, 1.0], [2.0, 3.0]]]), target) == 0.5
    for problem in (CopyBits(3), RepeatCopy(3), AssociativeRecall(3)):
        assert problem.without_memory == pytest.approx(math.log(2))


def test_the_same_weights_answer_alike_with_another_number_of_rows_that_nothing_reaches() -> None:
    torch.manual_seed(1)
    problem = CopyBits(2, bits=3)
    for cell in ("ntm", "dnc"):
        small, large = (BitNetwork({"name": cell, "rows": rows, "width": 3}, problem, 4) for rows in (8, 20))
        large.load_state_dict(small.state_dict())  # no weight depends on the rows
        assert 0 <= large.right(problem, rows=3) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "updates"), [("ntm", 1000), ("dnc", 400)])
def test_a_copy_of_twice_the_length_is_right(cell: str, updates: int) -> None:
    torch.manual_seed(1)
    problem = CopyBits(10)
    network = BitNetwork({"name": cell, "rows": 24, "width": 10}, problem, hidden=64)
    for look in learn_bits(network, problem, seed=1 if cell == "dnc" else 0):
        if look.updates >= updates:
            break
    larger = BitNetwork({"name": cell, "rows": 64, "width": 10}, problem, hidden=64, engine="loop")
    larger.load_state_dict(network.state_dict())
    assert larger.right(CopyBits(20, 20)) >= 0.99
