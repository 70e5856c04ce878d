"""Saliency: against finite differences, and whether integrated gradients add up to the whole."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from recurra.analysis.probabilities import Probabilities
from recurra.analysis.saliency import Saliency, saliency, view
from recurra.errors import ConfigError, DataError
from recurra.training.explaining import example_of
from recurra.training.trained import Trained
from recurra.views.tokens import Tokens
from tests.analysis import small_runs
from tests.analysis.asking import probabilities_of, probe_of

CASES: dict[str, tuple[Callable[[], Trained], str, str, str]] = {
    "classification": (
        lambda: small_runs.classifier("model.encoder=rnn", "model.characters.cell=none"),
        "a so good film",
        "readers.0.embedding",
        "words",
    ),
    "several classifiers": (
        lambda: small_runs.classifier("model.encoder=ensemble", "model.characters.cell=none"),
        "bad film",
        "readers.0.embedding",
        "words",
    ),
    "tagging": (lambda: small_runs.tagger("model.head=crf"), "the cat sleeps", "read_words.embedding", "words"),
    "language model": (lambda: small_runs.language_model(), "one three", "embedding", "tokens"),
    "seq2seq": (lambda: small_runs.writer(), "cat", "embedding", "source"),
    "one table for all": (
        lambda: small_runs.writer("model.tied=all", "data.joint=true"),
        "cat",
        "embedding",
        "source",
    ),
}


def grown(model: Trained) -> Trained:
    """The same model with larger weights, so that it is far from linear."""
    network = copy.deepcopy(model.model).double()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.mul_(2.0 if "embedding" not in name else 1.5)
    return Trained(model.task, network, model.folder)


@pytest.mark.parametrize("case", CASES)
def test_integrated_gradients_add_up_to_what_the_input_changed(case: str) -> None:
    made, text, _, _ = CASES[case]
    model = grown(made())
    found = saliency(probe_of(model, example_of(model.task, text)), "integrated")
    change = np.asarray(found.whole) - np.asarray(found.nothing)
    assert np.abs(change).max() > 0.05
    lack = np.abs(np.asarray(found.values).sum(1) - change)
    assert (lack <= 0.01 * np.maximum(np.abs(change), 0.1)).all()
    assert found.missing.max() <= 0.01


@pytest.mark.parametrize("case", ["classification", "tagging", "language model", "seq2seq"])
def test_gradient_times_input_is_the_slope_when_a_vector_grows(case: str) -> None:
    """A token's value is df/ds where its vector is multiplied by s: found by changing the table of vectors itself."""
    made, text, table, key = CASES[case]
    model = grown(made())
    example = example_of(model.task, text)
    probe = probe_of(model, example)
    found = saliency(probe, "gradient")
    network: Any = model.model
    weight = network.get_submodule(table).weight
    ids = [int(each) for each in model.task.encode(example)[key]]
    if case == "language model":
        ids = model.task.batch([model.task.encode(example)]).inputs.values[0].tolist()

    def f(token: int, grows: float) -> np.ndarray[Any, Any]:
        before = weight[token].clone()
        weight[token] *= 1 + grows
        values = probe.values(network, probe.batch(1))[0].numpy().copy()
        weight[token] = before
        return values

    with torch.no_grad():
        for token in set(ids):
            slopes = (f(token, 1e-5) - f(token, -1e-5)) / 2e-5
            places = [place for place, each in enumerate(ids) if each == token]
            values = np.asarray(found.values)[:, places].sum(1)  # one row of the table stands at all of them
            assert values == pytest.approx(slopes[: len(values)], abs=1e-7)


def test_what_is_explained_is_the_answer() -> None:
    model = small_runs.classifier("model.encoder=rnn", "model.characters.cell=none")
    [answer] = model.predict(["a good film"])
    found = saliency(probe_of(model, example_of(model.task, "a good film")), "gradient")
    assert list(found.answers) == [answer.output]
    assert np.asarray(found.whole)[0] == pytest.approx(answer.score - np.log1p(-np.exp(answer.score)), abs=1e-4)
    text = small_runs.language_model()
    [scored] = text.predict(["one three"], detail=True)
    of_text = saliency(probe_of(text, example_of(text.task, "one three")), "gradient")
    assert np.asarray(of_text.whole) == pytest.approx(scored.detail["log_probabilities"], abs=1e-4)
    assert np.triu(np.asarray(of_text.values), 1) == pytest.approx(0.0, abs=1e-12)  # no token depends on later ones


@pytest.mark.parametrize("task", ["tagging", "classification"])
def test_frames_are_explained_like_words(task: str) -> None:
    model = small_runs.of_frames(task)
    found = saliency(probe_of(model, example_of(model.task, "[[1, 0], [0, 2], [3, 1]]")), "integrated")
    assert list(found.tokens) == ["1", "2", "3"]
    assert found.missing.max() <= 0.01
    assert np.abs(np.asarray(found.values)).min() > 0


def test_of_a_long_text_the_beginning_is_explained_and_it_alone_is_read() -> None:
    model = small_runs.language_model()
    long, short = (probe_of(model, example_of(model.task, "one two " * count)) for count in (20, 8))
    assert (len(long.tokens), len(long.answers), long.left_out) == (60, 60, 101)
    assert long.values(model.model, long.batch(1)).shape == (1, 60)
    found = [np.asarray(saliency(probe, "gradient").values) for probe in (long, short)]
    assert found[0][:50, :50] == pytest.approx(found[1][:50, :50], abs=1e-9)


def test_the_tokens_of_an_answer_have_the_probabilities_that_make_its_own() -> None:
    model = small_runs.writer("decoding.width=4", "decoding.best=4", "decoding.length_penalty=0")
    example = example_of(model.task, "dog")
    [answer] = model.predict(["dog"], detail=True)
    for number, other in enumerate([answer.detail, *answer.alternatives], 1):
        found = probabilities_of(model, example, best=number)
        assert list(found.tokens[: len(other["tokens"])]) == other["tokens"]
        assert np.asarray(found.log_probabilities).sum() == pytest.approx(other["log_probability"], abs=1e-4)
    with pytest.raises(DataError, match="--best 5: the search found 4 answers"):
        probabilities_of(model, example, best=5)


def test_surprise_of_a_text_is_that_of_predict() -> None:
    model = small_runs.language_model()
    found = probabilities_of(model, example_of(model.task, "one two"))
    [answer] = model.predict(["one two"], detail=True)
    assert found.bits.sum() * np.log(2) == pytest.approx(-answer.score, abs=1e-4)
    assert "bits a token" in found.view().text()


@pytest.mark.parametrize(
    ("model", "text", "said"),
    [
        (lambda: small_runs.classifier("model.encoder=bag", "model.bag.buckets=10"), "bad", "reads a bag of words"),
        (
            lambda: small_runs.writer().with_settings(["decoding.search=given"]),
            "cat",
            "search = given generates no output",
        ),
    ],
)
def test_what_cannot_be_explained_is_said(model: Callable[[], Trained], text: str, said: str) -> None:
    trained = model()
    with pytest.raises((ConfigError, DataError), match=said):
        probe_of(trained, example_of(trained.task, text))


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"1 answers and 2 tokens need one row per answer and one column per token, .* \(2, 1\)"
    ):
        Saliency("ab", "x", [[1], [2]], [0], [0], "gradient", "log p")
    with pytest.raises(DataError, match="there is nothing to explain: the input or the output is empty"):
        Saliency([], "x", np.zeros((1, 0)), [0], [0], "gradient", "log p")
    with pytest.raises(DataError, match=r"2 tokens need one probability each, but the probabilities have shape \(1,\)"):
        Probabilities("ab", [1.0])


def of(answers: int) -> Saliency:
    tokens = ["<img onerror=x>", "שלום", "日本"]
    values = np.linspace(-1, 2, 3 * answers).reshape(answers, 3)
    names = [f"<b>{number}" for number in range(answers)]
    return Saliency(tokens, names, values, np.ones(answers), np.zeros(answers), "integrated", "log p", "a & b", 7)


@pytest.mark.parametrize("answers", [1, 7])
def test_tokens_are_escaped_in_words_and_in_maps(answers: int) -> None:
    found = view(of(answers))
    html = found.html()
    assert not re.search("<img|<b>", html + found.svg())
    assert html.count("&lt;img␣onerror=x&gt;") >= answers
    assert ("The first 7 of 14 are shown." in html) == (answers == 7)
    assert ("except 50%" in html) == (answers == 1)  # what is missing is said


def test_the_strongest_are_named_in_the_text() -> None:
    assert view(of(5)).text().splitlines()[-1] == "and 7 more, which are left out"
    assert view(of(1)).text().splitlines()[:3] == [
        "a & b",
        "integrated gradients",
        "<b>0: log p 1.00, without the input 0.00; the colours explain all of the difference except 50%",
    ]


def test_a_picture_shows_both_methods_of_few_answers_and_the_first_of_many() -> None:
    for answers, pictures in ((1, 2), (7, 1)):
        other = dataclasses.replace(of(answers), method="gradient")
        both = view(of(answers), other)
        assert [each.title for each in both.views] == ["integrated gradients", "gradient × input"]
        drawing = both.svg()
        assert ("gradient × input" in drawing) == (pictures == 2)
        assert "gradient × input" in both.html()


def test_the_answer_that_the_input_changed_most_is_explained_first() -> None:
    found = dataclasses.replace(of(3), whole=[0.0, -2.0, 1.0])
    assert [each.first for each in view(found).views if isinstance(each, Tokens)] == [1]


def test_the_surprise_of_a_token_is_its_colour() -> None:
    found = Probabilities(["a", "b", "c"], np.log([1.0, 0.5, 2**-16]), "a text").view()
    [row] = found.rows
    assert np.asarray(row.strengths).tolist() == [0.0, -0.0625, -1.0]
    assert row.note == "5.67 bits a token on average, perplexity 50.80; full colour is 16 bits"
    assert row.heading == "Surprise: a text"


def test_the_terminal_has_one_minus_and_a_page_the_real_one() -> None:
    found = view(Saliency(["not"], ["praise"], [[-0.5]], [-1.5], [-1.0], "integrated", "log odds"))
    assert "log odds -1.50, without the input -1.00" in found.text()
    assert "−" not in found.text()
    for drawn in (found.svg(), found.html()):
        assert "log odds −1.50, without the input −1.00" in drawn
