"""Adam for the rows that were met: against its equations, and against Adam where all rows are met."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from recurra.training import c_adam
from recurra.training.lazy_adam import LazyAdam


@pytest.fixture(params=["C", "torch"], autouse=True)
def computed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By either way."""
    if request.param == "torch":
        monkeypatch.setattr(c_adam, "compiled", lambda: None)


def moved(weight: Tensor, kind: type, slopes: list[Tensor]) -> Tensor:
    weight = weight.clone().requires_grad_()
    optimiser = kind([weight], lr=0.1, betas=(0.8, 0.95))
    for slope in slopes:
        weight.grad = slope
        optimiser.step()
    return weight.detach()


def test_where_every_row_is_met_it_is_adam() -> None:
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(6, 3, generator=draw)
    slopes = [torch.randn(6, 3, generator=draw) for _ in range(5)]
    lazy = moved(weight, LazyAdam, [slope.to_sparse(1) for slope in slopes])
    torch.testing.assert_close(lazy, moved(weight, torch.optim.Adam, slopes), atol=1e-6, rtol=1e-5)


def test_rows_that_are_not_met_stay_and_the_others_follow_the_equations() -> None:
    weight = torch.tensor([[1.0], [2.0], [3.0]])
    slopes = [
        torch.sparse_coo_tensor(
            torch.tensor([[0, 2, 2]]), torch.tensor([[0.5], [1.0], [1.0]]), (3, 1), check_invariants=True
        )
        for _ in range(2)
    ]
    slopes.append(torch.sparse_coo_tensor(torch.tensor([[0]]), torch.tensor([[-1.0]]), (3, 1), check_invariants=True))
    m, v, w = np.zeros(3), np.zeros(3), weight[:, 0].double().numpy().copy()
    for t, met in enumerate([{0: 0.5, 2: 2.0}, {0: 0.5, 2: 2.0}, {0: -1.0}], 1):
        for row, g in met.items():
            m[row] = 0.8 * m[row] + 0.2 * g
            v[row] = 0.95 * v[row] + 0.05 * g * g
            w[row] -= 0.1 * (m[row] / (1 - 0.8**t)) / (np.sqrt(v[row] / (1 - 0.95**t)) + 1e-8)
    found = moved(weight, LazyAdam, slopes)
    np.testing.assert_allclose(found[:, 0].numpy(), w, rtol=1e-5)
    assert found[1] == 2.0


@pytest.mark.parametrize(
    ("options", "said"), [({"betas": (1.0, 0.9)}, "betas must be between"), ({"eps": 0.0}, "eps must be above 0")]
)
def test_options_out_of_range_are_refused(options: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LazyAdam([torch.zeros(1, 1, requires_grad=True)], **options)  # type: ignore[arg-type]
