"""The best label in C, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from recurra.heads import c_best
from recurra.heads.c_best import best_labels


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("steps", "depth", "labels"), [(1, 1, 1), (7, 5, 3), (51, 33, 65), (60, 16, 200), (0, 3, 2)])
def test_labels_and_their_probabilities_are_those_of_the_equations(
    steps: int, depth: int, labels: int, threads: int
) -> None:
    torch.manual_seed(steps)
    before = torch.get_num_threads()
    h, W, b = (torch.randn(*size, dtype=torch.float64) for size in ((steps, depth), (labels, depth), (labels,)))
    torch.set_num_threads(threads)
    try:
        found = best_labels(h, W, b)
    finally:
        torch.set_num_threads(before)
    if c_best.compiled(True) is None:
        assert found is None
        return
    assert found is not None
    o = h.numpy() @ W.numpy().T + b.numpy()
    assert found[0].tolist() == o.argmax(1).tolist()
    largest = o.max(1, initial=-np.inf)
    np.testing.assert_allclose(found[1], largest - np.log(np.exp(o).sum(1)), atol=1e-12)


def test_of_equal_labels_the_first_is_chosen_and_what_is_no_number_has_label_0() -> None:
    h = torch.tensor([[1.0, 2.0], [torch.nan, 0.0]])
    found = best_labels(h, torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), torch.zeros(3))
    assert found is None or found[0].tolist() == [1, 0]


def test_numbers_that_c_cannot_read_are_left_to_torch() -> None:
    assert best_labels(torch.zeros(2, 3).T, torch.zeros(4, 2), torch.zeros(4)) is None
    assert best_labels(torch.zeros(3, 2, dtype=torch.bfloat16), torch.zeros(4, 2), torch.zeros(4)) is None
