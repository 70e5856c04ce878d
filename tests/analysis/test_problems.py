"""The memory problems: what they draw, what they cost without memory, and that a gated cell learns one."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Generator

from recurra.analysis.problems import Adding, CopyMemory, learn


def test_always_answering_one_costs_a_sixth() -> None:
    x, y = Adding(50).draw(20_000, Generator().manual_seed(0))
    assert x.values[..., 1].sum(1).unique().tolist() == [2.0]
    assert Adding(50).loss(torch.ones(20_000, 50, 1), y).item() == pytest.approx(1 / 6, rel=0.03)
    assert Adding(50).without_memory == 1 / 6


def test_knowing_all_but_the_symbols_costs_ten_logs_of_eight() -> None:
    problem = CopyMemory(30)
    x, y = problem.draw(100, Generator().manual_seed(0))
    assert x.values.shape == (100, 50, 10)
    outputs = torch.full((100, 50, 9), -1e4)
    outputs[:, :40, 0] = 0  # blank for sure
    outputs[:, 40:, 1:] = 0  # then any of the eight symbols
    assert problem.loss(outputs, y).item() == pytest.approx(problem.without_memory, rel=1e-5)
    assert problem.without_memory == pytest.approx(10 * math.log(8) / 50)


def test_the_course_of_learning_is_fixed_by_the_seed() -> None:
    def course(seed: int) -> list[float]:
        looks = learn(Adding(5), "gru", hidden=4, rows=8, look_every=3, seed=seed)
        return [progress.loss for progress in itertools.islice(looks, 3)]

    assert course(1) == course(1)
    assert course(1) != course(2)


def test_an_lstm_learns_to_add_over_a_short_stretch() -> None:
    looks = learn(Adding(8), "lstm", hidden=24, learning_rate=1e-2, look_every=50)
    best = min(progress.loss for progress in itertools.islice(looks, 13))
    assert best < 0.02
