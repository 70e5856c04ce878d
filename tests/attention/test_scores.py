"""Every score and every term: their equations in numpy, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from recurra.attention import Attention
from recurra.attention.terms.term import Term
from recurra.errors import ConfigError
from recurra.named import built, catalogue
from tests.attention import equations
from tests.attention.every import EVERY, Spec, drawn, title


def test_every_score_and_every_term_has_its_equation() -> None:
    assert catalogue(Attention) == sorted(equations.SCORES)
    assert catalogue(Term) == sorted(equations.TERMS)


@pytest.mark.parametrize("spec", EVERY, ids=title)
def test_weights_and_contexts_are_those_of_the_equations(spec: Spec) -> None:
    torch.manual_seed(1)
    attention = drawn(spec)
    draw = np.random.default_rng(1)
    places = draw.normal(size=(3, 6, attention.memory_size))
    queries = draw.normal(size=(3, 4, attention.query_size))
    mask = np.array([[True] * 6, [True] * 4 + [False] * 2, [False, True, False, True, True, False]])
    memory = attention.remember(torch.from_numpy(places), torch.from_numpy(mask))
    seen = attention(torch.from_numpy(queries), memory)
    assert seen.context.shape == (3, 4, attention.context_size)
    for row in range(3):
        contexts, weights = equations.attended(spec, attention, queries[row], places[row], mask[row])
        np.testing.assert_allclose(seen.weights[row].detach(), weights, atol=1e-13)
        np.testing.assert_allclose(seen.context[row].detach(), contexts, atol=1e-13)


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_a_plain_product_of_unequal_sizes_is_refused_with_both_sizes_and_a_way_out(name: str) -> None:
    with pytest.raises(
        ConfigError, match=f"attention '{name}' .* has 5 features and the memory 6: .*hidden = 6, .*'bilinear'"
    ):
        built(Attention, name, 5, 6)


def test_heads_must_share_the_values_evenly() -> None:
    with pytest.raises(
        ConfigError, match=r"heads = 4 must divide the size.*, but the memory has 6: set values = 4 or "
    ):
        built(Attention, {"name": "projected_dot", "heads": 4}, 4, 6)
    with pytest.raises(ConfigError, match="but values = 3: set values = 4 or another multiple of 4"):
        built(Attention, {"name": "projected_dot", "heads": 4, "values": 3}, 4, 8)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"name": "additive", "size": 0}, "size must be a whole number of at least 1, but is 0"),
        ({"name": "additive", "activation": "tanhh"}, "activation = 'tanhh' is not known. Did you mean 'tanh'"),
        ({"name": "projected_dot", "heads": 0}, "heads must be a whole number of at least 1"),
        ({"name": "projected_dot", "size": -1}, "size must be a whole number of at least 1"),
        ({"name": "dot", "values": 0}, "values must be a whole number of at least 1"),
        ({"name": "bilinear", "size": 3}, "'bilinear' has no option 'size'"),
        ({"name": "bilinear", "terms": [{"name": "monotonic", "strength": 0.0}]}, "must be a number above 0, but is 0"),
        ({"name": "bilinear", "terms": [{"name": "coverage", "strength": np.inf}]}, "a finite number, but is inf"),
        (
            {"name": "bilinear", "terms": [{"name": "location", "width": 4}]},
            "must be odd, so that it is centred, but is 4",
        ),
        ({"name": "bilinear", "terms": [{"name": "location", "filters": 0}]}, "filters must be a whole number"),
        (
            {"name": "bilinear", "terms": [{"name": "location", "of": "some"}]},
            "of must be 'last' or 'all', but is 'som",
        ),
        ({"name": "bilinear", "terms": [{"name": "location", "dimensions": 3}]}, "dimensions must be 1 or 2, but is 3"),
        ({"name": "additive", "location": {"width": 2}}, "must be odd, so that it is centred, but is 2"),
        ({"name": "additive", "location": {"with": 3}}, "'location' has no option 'with'. Did you mean 'width'"),
        ({"name": "additive", "location": {"of": "first"}}, "'location': of must be 'last' or 'all', but is 'first'"),
        ({"name": "additive", "location": True}, "'additive': location must be "),
        ({"name": "bilinear", "terms": ["monotone"]}, "there is no term 'monotone'. Did you mean 'monotonic'"),
        ({"name": "aditive"}, "there is no attention 'aditive'. Did you mean 'additive'"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: Spec, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        built(Attention, spec, 4, 4)
