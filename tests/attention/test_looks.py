"""Hard attention against its equations, its gradient against the exact one; what looks refuse."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recurra.attention import Attention
from recurra.attention.looks.hard import Hard
from recurra.attention.looks.look import Look
from recurra.errors import ConfigError
from recurra.models.looking import doubly_stochastic, reinforced
from recurra.named import built, catalogue
from recurra.wirings import Features
from tests.attention import equations
from tests.attention.every import LOCAL, Spec, asked, drawn, drawn_grid, remembered, remembered_grid

HARD: Spec = {"name": "bilinear", "look": "hard"}


def soft_weights(attention: Attention, queries: torch.Tensor, places: torch.Tensor) -> np.ndarray:
    plain = {"name": "bilinear"}
    return equations.attended(plain, attention, queries.numpy(), places.numpy(), np.ones(len(places), bool))[1]


def test_every_look_is_tested() -> None:
    assert {"hard", *(spec["look"]["name"] for spec in LOCAL)} == set(catalogue(Look))


def test_in_evaluation_the_most_probable_place_is_looked_at() -> None:
    attention = drawn(HARD).eval()
    places, queries = torch.randn(1, 5, 4).double(), asked(attention, 1, 3)
    seen = attention(queries, attention.remember(places, torch.ones(1, 5, dtype=torch.bool)))
    best = soft_weights(attention, queries[0], places[0]).argmax(1)
    assert seen.weights[0].tolist() == np.eye(5)[best].tolist()
    assert_close(seen.context[0], places[0, best], rtol=0, atol=1e-13)
    assert seen.chance is None


def test_in_training_places_are_drawn_as_often_as_they_are_probable() -> None:
    attention = drawn({**HARD, "look": {"name": "hard", "soft": 0.25}}).train()
    places = torch.randn(1, 4, 4).double()
    query = asked(attention, 1, 1)
    memory = attention.remember(places, torch.ones(1, 4, dtype=torch.bool))
    seen = attention(query.expand(1, 40_000, -1), memory)
    alpha = soft_weights(attention, query[0], places[0])[0]
    assert seen.chance is not None
    is_soft = seen.chance[0, :, 0] == 0
    assert float(is_soft.double().mean()) == pytest.approx(0.25, abs=0.01)
    assert_close(seen.weights[0, is_soft][0], torch.from_numpy(alpha), rtol=0, atol=1e-13)
    drawn_places = seen.weights[0, ~is_soft]
    assert {*drawn_places.unique().tolist()} == {0.0, 1.0}
    np.testing.assert_allclose(drawn_places.mean(0).detach(), alpha, atol=0.015)
    # What was left to chance: log α of the place that was drawn, and the entropy of α.
    log_alpha = torch.from_numpy(np.log(alpha))[drawn_places.argmax(1)]
    assert_close(seen.chance[0, ~is_soft, 0], log_alpha, rtol=0, atol=1e-10)
    assert_close(seen.chance[0, 0, 1].item(), -float(alpha @ np.log(alpha)), rtol=0, atol=1e-10)


def test_the_mean_gradient_of_draws_is_that_of_the_expected_likelihood() -> None:
    """∇ Σ_s p(s) log p(y | s), summed over all places that two steps may look at, against REINFORCE's mean over draws
    weighted by their probabilities; a baseline changes nothing."""
    e = torch.randn(1, 2, 3, dtype=torch.float64, requires_grad=True)
    log_y = -torch.rand(3, 3, dtype=torch.float64)  # log p(y | s_1, s_2)
    alpha = e.softmax(2)[0]
    pairs = list(product(range(3), repeat=2))
    expected = torch.stack([alpha[0, i] * alpha[1, j] * log_y[i, j] for i, j in pairs]).sum()
    [exact] = torch.autograd.grad(expected, e)
    for baseline in (0.0, -0.7):
        total = torch.zeros(1, 2, 3, dtype=torch.float64)
        for i, j in pairs:
            probability = float((alpha[0, i] * alpha[1, j]).detach())
            chance = torch.stack([torch.stack([e.log_softmax(2)[0, t, s], e.sum() * 0]) for t, s in ((0, i), (1, j))])
            features = Features(torch.zeros(1, 2, 1), None, chance.unsqueeze(0))
            look, b = Hard(1, entropy=0.0), torch.tensor([baseline], dtype=torch.float64)
            found = reinforced(features, look, log_y[i, j].view(1), torch.tensor([2]), b)
            total = total - probability * torch.autograd.grad(found.total, e)[0]
            assert_close(found.baseline, 0.9 * b + 0.1 * log_y[i, j], rtol=0, atol=1e-14)
        assert_close(total, exact, rtol=0, atol=1e-12)


def test_padding_earns_no_reward_and_has_no_entropy() -> None:
    chance = torch.randn(2, 3, 2, dtype=torch.float64)
    log_p, lengths = torch.tensor([-1.0, -3.0]).double(), torch.tensor([3, 1])
    found = reinforced(
        Features(torch.zeros(2, 3, 1), None, chance), Hard(1, reward=0.5, entropy=2.0), log_p, lengths, None
    )
    advantages = [1.0, -1.0]  # the first mean is that of the batch, -2
    first = sum(0.5 * advantages[row] * float(chance[row, t, 0]) for row, t in ((0, 0), (0, 1), (0, 2), (1, 0)))
    second = sum(2.0 * float(chance[row, t, 1]) for row, t in ((0, 0), (0, 1), (0, 2), (1, 0)))
    assert float(found.total) == pytest.approx(-first - second, abs=1e-12)
    assert float(found.baseline) == pytest.approx(-2.0)


def test_a_baseline_per_token_compares_a_target_with_others_of_its_length() -> None:
    chance = torch.randn(2, 3, 2, dtype=torch.float64)
    features, look = Features(torch.zeros(2, 3, 1), None, chance), Hard(1, entropy=0.0, baseline="token")
    found = reinforced(features, look, torch.tensor([-3.0, -2.0]).double(), torch.tensor([3, 1]), torch.tensor([-1.2]))
    drawn_of_rows = [float(chance[0, :, 0].sum()), float(chance[1, 0, 0])]
    assert float(found.total) == pytest.approx(-(0.6 * drawn_of_rows[0] - 0.8 * drawn_of_rows[1]), abs=1e-6)
    assert float(found.baseline) == pytest.approx(0.9 * -1.2 + 0.1 * -5 / 4)


def test_the_doubly_stochastic_term_is_its_equation() -> None:
    weights = torch.rand(2, 3, 4, dtype=torch.float64)
    mask, lengths = torch.tensor([[True] * 4, [True, True, False, False]]), torch.tensor([2, 3])
    expected = sum(
        (1 - sum(float(weights[row, t, i]) for t in range(steps))) ** 2
        for row, (steps, places) in enumerate([(2, 4), (3, 2)])
        for i in range(places)
    )
    assert float(doubly_stochastic(weights, mask, lengths)) == pytest.approx(expected, abs=1e-12)


def test_steps_behind_the_source_see_nothing() -> None:
    attention = drawn(LOCAL[0])
    seen = attention(asked(attention, 1, 6), remembered(attention, [2]))
    assert (seen.weights[0, 4:] == 0).all()  # a reach of 2 ends at place 3
    assert (seen.context[0, 4:] == 0).all()
    assert_close(seen.weights[0, :4].sum(1), torch.ones(4).double())


def test_what_draws_needs_a_wiring_that_says_so() -> None:
    with pytest.raises(ConfigError, match=r"this wiring does not hand that on: return Features\(values, weights, see"):
        reinforced(Features(torch.zeros(1, 2, 1), None), Hard(1), torch.zeros(1), torch.tensor([2]), None)


def test_a_grid_has_no_neighbourhood_in_one_dimension() -> None:
    attention = drawn(LOCAL[0])
    with pytest.raises(ConfigError, match="look = 'local' needs a sequence, but these places have rows and columns"):
        attention(asked(attention, 1, 2), remembered_grid(attention, drawn_grid([(2, 3)])))


@pytest.mark.parametrize(
    ("look", "complaint"),
    [
        ("locale", "there is no look 'locale'. Did you mean 'local'?"),
        ({"name": "local", "reach": 0}, "reach must be a whole number of at least 1, but is 0"),
        ({"name": "local", "centre": "predicted"}, "centre must be 'monotonic' or 'predictive', but is 'predicted'"),
        ({"name": "hard", "soft": 1.0}, "soft of a hard look must be at least 0 and below 1, but is 1.0"),
        ({"name": "hard", "entropy": -1.0}, "entropy of a hard look must be at least 0, but is -1.0"),
        ({"name": "hard", "rewards": 1.0}, "'hard' has no option 'rewards'. Did you mean 'reward'?"),
    ],
)
def test_options_that_make_no_sense_are_refused(look: object, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(Attention, {"name": "dot", "look": look}, 4, 4)
    assert complaint in str(caught.value)
