"""Several models as one, against numpy."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from recurra import ConfigError
from recurra.search.beam import beam
from recurra.search.ensemble import together
from recurra.search.greedy import greedy
from tests.search.tiny import begun, claims, tiny


@pytest.mark.parametrize("combine", ["mean", "product"])
def test_an_ensemble_of_one_is_the_model(combine: Literal["mean", "product"]) -> None:
    model, (moving, fixed) = tiny(0, 6), begun(0, 2)
    first = torch.tensor([0, 1])
    options: dict[str, Any] = {"width": 3, "best": 3, "length": 8, "ends": [5], "length_penalty": 1.0}
    one = beam(together([model.step], combine), first, (moving,), (fixed,), **options)
    for found, expected in zip(one, beam(model.step, first, moving, fixed, **options), strict=True):
        assert claims(found) == claims(expected)
        for a, b in zip(found, expected, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-10)


@pytest.mark.parametrize("combine", ["mean", "product"])
def test_two_models_are_the_mean_of_their_probabilities_or_of_their_logarithms(
    combine: Literal["mean", "product"],
) -> None:
    one, other, (moving, fixed) = tiny(0, 6), tiny(1, 6), begun(0, 1)
    p, q = (model.step(torch.tensor([2]), moving, fixed)[0][0].exp().numpy() for model in (one, other))
    expected = (p + q) / 2 if combine == "mean" else np.sqrt(p * q) / np.sqrt(p * q).sum()
    log_p, moved = together([one.step, other.step], combine)(torch.tensor([2]), (moving, moving), (fixed, fixed))
    np.testing.assert_allclose(log_p[0].exp().numpy(), expected, rtol=1e-12)
    for model, state in zip((one, other), moved, strict=True):
        torch.testing.assert_close(state, model.step(torch.tensor([2]), moving, fixed)[1])


def test_every_model_keeps_its_own_states() -> None:
    """Two equal models are one, wherever hypotheses go."""
    model, (moving, fixed) = tiny(3, 6), begun(3, 3)
    first = torch.tensor([0, 1, 2])
    options: dict[str, Any] = {"width": 4, "best": 4, "length": 8, "ends": [5]}
    two = beam(together([model.step] * 2), first, (moving,) * 2, (fixed,) * 2, **options)
    for found, expected in zip(two, beam(model.step, first, moving, fixed, **options), strict=True):
        assert claims(found) == claims(expected)
    chosen = greedy(together([model.step] * 2), first, (moving,) * 2, (fixed,) * 2, length=8, ends=[5])
    assert claims(chosen) == claims(greedy(model.step, first, moving, fixed, length=8, ends=[5]))


def test_a_token_that_one_model_rules_out_has_half_of_the_others_probability_or_none() -> None:
    def sure(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.tensor([[1.0, 0.0, 0.0]]).log().expand(len(tokens), -1), moving

    def unsure(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.tensor([[0.5, 0.5, 0.0]]).log().expand(len(tokens), -1), moving

    for combine, expected in (("mean", [[0.75, 0.25, 0.0]]), ("product", [[1.0, 0.0, 0.0]])):
        log_p, _ = together([sure, unsure], combine)(torch.tensor([0]), ((), ()), ((), ()))  # type: ignore[arg-type]
        assert log_p.exp().tolist() == expected


def test_what_cannot_be_combined_is_refused() -> None:
    one, other, (moving, fixed) = tiny(0, 6), tiny(1, 7), begun(0, 1)
    with pytest.raises(ConfigError, match="an ensemble needs at least one model"):
        together([])
    with pytest.raises(ConfigError, match="combine must be 'mean' or 'product', but is 'vote'"):
        together([one.step], "vote")  # type: ignore[arg-type]
    message = "the models of an ensemble need the same vocabulary, but theirs have [6, 7] tokens."
    with pytest.raises(ConfigError, match=re.escape(message)):
        together([one.step, other.step])(torch.tensor([0]), (moving, moving), (fixed, fixed))
