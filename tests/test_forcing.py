"""Teacher forcing's probability: the closed forms at every step, and mistakes with their line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.config.forcing import SHAPES, Forcing
from recurra.config.given import Given
from recurra.config.seq2seq import Seq2SeqSettings
from recurra.errors import ConfigError

STEPS = np.arange(0, 50_000, 97)
share = st.floats(0, 1)


def probabilities(given: object) -> list[float]:
    forcing = Forcing.of(given)
    return [forcing.probability(int(step)) for step in STEPS]


@given(share, st.floats(0, 1e-2), share)
def test_linear_falls_by_c_an_update_down_to_its_floor(k: float, c: float, of_k: float) -> None:
    floor = k * of_k
    found = probabilities({"name": "linear", "k": k, "c": c, "floor": floor})
    np.testing.assert_allclose(found, np.maximum(floor, k - c * STEPS), rtol=1e-12)


@given(st.floats(0.5, 1), share)
def test_exponential_is_a_power_of_k(k: float, floor: float) -> None:
    found = probabilities({"name": "exponential", "k": k, "floor": floor})
    np.testing.assert_allclose(found, np.maximum(floor, np.float64(k) ** STEPS), rtol=1e-9, atol=1e-300)


@given(st.floats(100, 1e6), share)
def test_inverse_sigmoid_is_its_formula(k: float, floor: float) -> None:
    found = probabilities({"name": "inverse_sigmoid", "k": k, "floor": floor})
    np.testing.assert_allclose(found, np.maximum(floor, k / (k + np.exp(STEPS / k))), rtol=1e-9)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("step", [0, 1, 10**6, 10**12])
def test_however_long_it_trains_it_is_a_probability(name: str, step: int) -> None:
    assert 0 <= Forcing.of(name).probability(step) <= 1


@pytest.mark.parametrize("k", [1, 1.0, 2.5])
def test_an_inverse_sigmoid_that_falls_at_once_does_not_overflow(k: float) -> None:
    forcing = Forcing.of({"name": "inverse_sigmoid", "k": k})
    assert forcing.probability(0) == pytest.approx(k / (k + 1))
    assert forcing.probability(10**9) == 0.0


@pytest.mark.parametrize("name", ["linear", "exponential", "inverse_sigmoid"])
def test_as_usual_it_begins_near_1_and_falls_over_some_ten_thousand_updates(name: str) -> None:
    forcing = Forcing.of(name)
    assert forcing.probability(0) > 0.999
    assert 0.3 < forcing.probability(10_000) < 1
    assert forcing.probability(10**6) < 1e-9


@given(share)
def test_a_number_is_constant(p: float) -> None:
    assert {*probabilities(p), *probabilities({"name": "constant", "k": p})} == {p}


def test_a_coin_is_for_a_token_and_the_replacement_greedy_unless_said() -> None:
    assert Forcing.of(1).probability(3) == 1.0
    usual, said = Forcing.of(0.5), Forcing.of({"name": "constant", "unit": "sequence", "replacement": "sampled"})
    assert (usual.unit, usual.replacement) == ("token", "greedy")
    assert (said.unit, said.replacement, said.probability(9)) == ("sequence", "sampled", 1.0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1.5", "training.forcing must be at least 0 and at most 1, but is 1.5"),
        ("-0.1", "training.forcing must be at least 0 and at most 1, but is -0.1"),
        ("nan", "training.forcing must be at least 0 and at most 1, but is nan"),
        ("true", "training.forcing must be"),
        ('"linaer"', "training.forcing = 'linaer' is not known. Did you mean 'linear'?"),
        ('"none"', "training.forcing = 'none' is not known. Known: constant, linear, exponential"),
        ("{k = 0.5}", "training.forcing needs a name"),
        ('{name = "exponential", c = 0.5}', "'exponential' has no option 'c'. Known: name, k, floor, unit, replace"),
        ('{name = "linear", flor = 0.5}', "'linear' has no option 'flor'. Did you mean 'floor'?"),
        ('{name = "linear", k = 1.5}', "training.forcing.k must be at least 0 and at most 1, but is 1.5"),
        ('{name = "linear", c = -1}', "training.forcing.c must be at least 0, but is -1"),
        ('{name = "linear", c = inf}', "training.forcing.c must be at least 0, but is inf"),
        ('{name = "linear", k = 0.5, floor = 0.75}', "training.forcing.floor = 0.75 is above k = 0.5"),
        ('{name = "exponential", k = 2}', "training.forcing.k must be at least 0 and at most 1, but is 2"),
        ('{name = "inverse_sigmoid", k = 0.9}', "training.forcing.k must be at least 1, but is 0.9"),
        ('{name = "inverse_sigmoid", k = true}', "training.forcing.k must be at least 1, but is True"),
        ('{name = "constant", floor = 0.5}', "'constant' has no option 'floor'"),
        ('{name = "linear", unit = "tokens"}', "unit = 'tokens' is not known. Did you mean 'token'? Known: token, seq"),
        ('{name = "linear", replacement = 3}', "training.forcing.replacement = 3 is not known. Known: greedy, sampled"),
    ],
)
def test_a_mistake_is_said_with_the_line_of_the_file(tmp_path: Path, value: str, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'task = "seq2seq"\n\n[training]\nepochs = 3\nforcing = {value}\n')
    with pytest.raises(ConfigError) as refusal:
        Given.of_file(path).settings(Seq2SeqSettings)
    assert str(refusal.value).startswith(f"{path}:5: ")
    assert message in str(refusal.value)


def test_what_is_neither_a_number_nor_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a number from 0 to 1, or a table with a name, such as \{name = 'linear'"):
        Forcing.of(None)


def test_it_can_be_set_on_the_command_line() -> None:
    given_settings = Given.of("seq2seq").options(["training.forcing=linear", "training.forcing.c=0.01"])
    forcing = Forcing.of(given_settings.settings(Seq2SeqSettings).training.forcing)
    assert math.isclose(forcing.probability(10), 0.9)
