"""The estimators do what scikit-learn asks of its own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from recurra.errors import ConfigError, DataError
from recurra.sklearn import (
    RecurrentClassifier,
    RecurrentForecaster,
    RecurrentRegressor,
    RecurrentTagger,
)

SMALL: dict[str, Any] = {"hidden": 8, "steps": 20, "learning_rate": 0.03, "settings": {"training.threads": 1}}
TEXTS = [f"{'good' if n % 2 else 'bad'} thing {n % 5}" for n in range(20)]
SIGNS = ["+" if n % 2 else "-" for n in range(20)]
OF_TEXT = {"model.embedding": 8, "model.characters.cell": None, "model.dropout": 0.0, "model.word_dropout": 0.0}
TEXTUAL = {**SMALL, "settings": {"training.threads": 1, **OF_TEXT}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RecurrentClassifier, RecurrentRegressor])
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn_pass(kind: Any) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(kind(hidden=4, steps=2, settings={"training.threads": 1}), on_fail=None)
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []
    assert sum(each["status"] == "passed" for each in found) > 50


OF_PARAMETERS = [
    *("check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types", "check_mixin_order"),
    "check_no_attributes_set_in_init",
]
"""Checks of scikit-learn that give an estimator no X."""


@pytest.mark.parametrize("kind", [RecurrentClassifier, RecurrentRegressor, RecurrentTagger, RecurrentForecaster])
def test_parameters_are_kept_as_they_were_given(kind: Any) -> None:
    from sklearn.utils import estimator_checks as checks

    checks.check_parameters_default_constructible(kind.__name__, kind())
    checks.check_get_params_invariance(kind.__name__, kind())
    checks.check_set_params(kind.__name__, kind())
    checks.check_estimator_repr(kind.__name__, kind())
    for name in OF_PARAMETERS:
        getattr(checks, name)(kind.__name__, kind())
    assert clone(kind(hidden=7)).get_params()["hidden"] == 7


def test_texts_are_classified_inside_a_pipeline_and_searched_over() -> None:
    upper = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    search = GridSearchCV(
        make_pipeline(upper, RecurrentClassifier(**TEXTUAL)), {"recurrentclassifier__hidden": [4, 8]}, cv=2
    )
    search.fit(TEXTS, SIGNS)
    assert search.best_score_ == 1.0
    assert search.predict(["good", "bad"]).tolist() == ["+", "-"]
    assert search.predict_proba(TEXTS).sum(1) == pytest.approx(1, abs=1e-5)


def test_a_fitted_estimator_survives_pickle_with_its_answers() -> None:
    model = RecurrentClassifier(**TEXTUAL).fit(TEXTS, SIGNS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert again.score(TEXTS, SIGNS) == 1.0


def test_numbers_are_told_of_sequences_of_any_length() -> None:
    random = np.random.default_rng(1)
    sequences = [random.normal(size=(length, 2)) for length in random.integers(3, 7, 30)]
    sums = [float(each[:, 0].mean()) for each in sequences]
    model = RecurrentRegressor(
        hidden=8, steps=100, learning_rate=0.02, random_state=3, settings={"training.threads": 1}
    )
    assert model.fit(sequences, sums).score(sequences, sums) > 0.5
    both = RecurrentRegressor(**SMALL).fit(sequences, np.stack([sums, sums], 1))
    assert both.predict(sequences).shape == (30, 2)


def test_words_are_tagged() -> None:
    X, y = [["the", "dog"], ["a", "cat", "sleeps"]] * 5, [["D", "N"], ["D", "N", "V"]] * 5
    model = RecurrentTagger(**TEXTUAL).fit(X, y)
    assert model.predict([["a", "dog"]]) == [["D", "N"]]
    assert model.score(X, y) == 1.0
    shares = model.predict_proba(X[:2])
    assert [each.shape for each in shares] == [(2, 3), (3, 3)]
    assert model.classes_.tolist() == ["D", "N", "V"]
    for share, tags in zip(shares, model.predict(X[:2]), strict=True):
        assert share.sum(1) == pytest.approx(1, abs=1e-5)
        assert [model.classes_[most] for most in share.argmax(1)] == tags
    detail = [each.detail["probabilities"][0] for each in model.model_.predict(X[:2], detail=True)]
    for share, most in zip(shares, detail, strict=True):
        assert share.max(1) == pytest.approx(np.array(most), abs=2e-6)
    assert model.predict_proba([]) == []
    with pytest.raises(DataError, match=r"y\[0\] has 1 tags for 2 elements"):
        model.fit(X[:1], [["D"]])
    with pytest.raises(DataError, match="X holds the text 'the dog', not a list of words"):
        model.predict(["the dog"])


def test_a_forecast_is_scored_by_the_steps_that_came() -> None:
    series = np.tile(np.arange(5.0), 12)
    model = RecurrentForecaster(horizon=5, hidden=16, steps=150, learning_rate=0.02, settings={"training.threads": 1})
    ahead = model.fit(series).predict()
    assert ahead.shape == (5,)
    low, high = model.predict_interval()
    assert (low <= high).all()
    assert model.score(np.arange(5.0)) > -1.2  # the mean alone would give -1.2
    assert model.predict(series[:12]).shape == (5,)
    scores = cross_val_score(RecurrentForecaster(horizon=5, **SMALL), series, cv=TimeSeriesSplit(2, test_size=5))
    assert (scores < 0).all()


def test_equal_seeds_give_equal_models_and_others_do_not() -> None:
    def answers(seed: int) -> Any:
        return RecurrentClassifier(**{**TEXTUAL, "steps": 2}, random_state=seed).fit(TEXTS, SIGNS).predict_proba(TEXTS)

    np.testing.assert_array_equal(answers(1), answers(1))
    assert not np.array_equal(answers(1), answers(2))


def test_what_cannot_be_fitted_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="y has only one class, 'a': RecurrentClassifier needs two or more"):
        RecurrentClassifier(**SMALL).fit(["x", "y"], ["a", "a"])
    with pytest.raises(ValueError, match="X has 2 rows, but y has 1"):
        RecurrentClassifier(**SMALL).fit(["x", "y"], ["a"])
    with pytest.raises(ConfigError, match=r"validation = 1\.5 must be a share of the rows"):
        RecurrentClassifier(validation=1.5).fit(["x", "y"], ["a", "b"])
    with pytest.raises(ValueError, match=r"X has the shape \(1, 1, 1\), but a series is \(steps,\)"):
        RecurrentForecaster().fit(np.zeros((1, 1, 1)))
    with pytest.raises(ValueError, match="Input X contains NaN or infinity"):
        RecurrentForecaster().fit([1.0, float("nan")])
