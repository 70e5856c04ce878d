"""Every pairing: its equations in numpy, padding, empty texts, gradients, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from recurra.config import ClassificationModel
from recurra.errors import ConfigError
from recurra.models.classifier import parts_of
from recurra.named import catalogue
from recurra.padding import Padded
from recurra.pairings import Pairing, pairing
from recurra.settings import name_of
from tests.pairings import equations
from tests.pairings.every import EVERY, E, drawn, texts

every = pytest.mark.parametrize("name", EVERY)


def test_every_file_is_tested() -> None:
    assert {name_of(spec) for spec, _ in EVERY.values()} == {*catalogue(Pairing)}


@every
def test_the_equations_of_a_pairing_hold(name: str) -> None:
    made, (first, second) = drawn(name), texts([4, 1, 6], [3, 5, 1])
    found = made(first, second)
    weights = {key: value.detach().numpy() for key, value in made.named_parameters()}
    oracle = getattr(equations, name.removesuffix(" both ways").replace(" ", "_"))
    for row, (one, other) in enumerate(zip(first.lengths.tolist(), second.lengths.tolist(), strict=True)):
        a, b = first.values[row, :one].numpy(), second.values[row, :other].numpy()
        vector, looked = oracle(weights, a, b)
        assert found.vector.shape == (3, made.output_size)
        assert np.abs(vector).max() > 1e-3
        np.testing.assert_allclose(found.vector[row].detach(), vector, atol=1e-11)
        if looked is None:
            assert found.weights is None
        else:
            np.testing.assert_allclose(found.weights[row, : len(looked), :one].detach(), looked, atol=1e-11)


@settings(max_examples=settings().max_examples // 8)
@given(
    name=st.sampled_from([*EVERY]),
    lengths=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=3),
    more=st.integers(0, 2),
)
def test_a_pair_is_read_the_same_alone_and_beside_longer_ones(
    name: str, lengths: list[tuple[int, int]], more: int
) -> None:
    made = drawn(name)
    ones, others = [one for one, _ in lengths], [other for _, other in lengths]
    first, second = texts([*ones, max(ones) + more], [*others, max(others) + more])
    together = made(first, second)
    for row, (one, other) in enumerate(lengths):
        alone = made(
            Padded(first.values[row : row + 1, :one], torch.tensor([one])),
            Padded(second.values[row : row + 1, :other], torch.tensor([other])),
        )
        assert_close(together.vector[row], alone.vector[0], rtol=0, atol=1e-12)
        if alone.weights is not None:
            assert_close(together.weights[row, : alone.weights.shape[1], :one], alone.weights[0], rtol=0, atol=1e-12)


@every
def test_weights_sum_to_one_over_the_first_text_and_are_zero_on_padding(name: str) -> None:
    first, second = texts([4, 2], [3, 5])
    found = drawn(name)(first, second)
    for weights, by, at in ((found.weights, second, first), (found.back, first, second)):
        if weights is None:
            continue
        is_real = by.mask if weights.shape[1] == by.values.shape[1] else torch.ones(2, 1, dtype=torch.bool)
        assert_close(weights.sum(-1), is_real.double(), rtol=0, atol=1e-12)
        assert (weights.masked_select(~at.mask.unsqueeze(1)) == 0).all()


@every
def test_a_text_without_words_gives_numbers_and_gradients(name: str) -> None:
    made = drawn(name)
    first, second = texts([2, 0, 3], [0, 2, 1])
    found = made(first, second).vector
    assert found.isfinite().all()
    found.sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in made.parameters())


@every
def test_both_texts_and_every_weight_matter(name: str) -> None:
    made = drawn(name)
    first, second = (text.zeroed() for text in texts([3, 2], [2, 4]))
    for text in (first, second):
        text.values.requires_grad_()
    made(first, second).vector.square().sum().backward()
    for text in (first, second):
        assert text.values.grad is not None
        assert (text.values.grad.abs().sum(-1)[text.mask] > 0).all()
        assert (text.values.grad[~text.mask] == 0).all()
    for key, weight in made.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.abs().sum() > 0, key


@every
def test_stacks_and_what_they_read_are_as_many(name: str) -> None:
    from recurra.analysis.gates import stacks_of

    made = drawn(name)
    assert len(made.read_by_stacks(["a"], ["b", "c"])) == len(stacks_of(made))


def test_a_cell_without_a_memory_hands_on_its_state() -> None:
    made = drawn("conditional", cell="gru")
    first, second = texts([3], [2])
    other = Padded(first.values + 1, first.lengths)
    assert not torch.allclose(made(first, second).vector, made(other, second).vector)


def test_the_memory_alone_starts_the_second_reader_unless_all_is_asked_for() -> None:
    torch.manual_seed(1)
    parts = parts_of(ClassificationModel(hidden=4, engine="loop", dropout=0.0))
    first, second = texts([3], [2])
    cell = pairing("conditional", E, parts).double()
    every = pairing({"name": "conditional", "state": "all"}, E, parts).double()
    every.load_state_dict(cell.state_dict())
    assert not torch.allclose(cell(first, second).vector, every(first, second).vector)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("siamse", "Did you mean 'siamese'"),
        ({"name": "decomposable", "comparing": "all"}, "'decomposable' has no option 'comparing'"),
        ({"name": "word_by_word", "attention": {"name": "additive", "values": 7}}, "attention.values = 7 must be"),
        ({"name": "attentive", "attention": "aditive"}, "Did you mean 'additive'"),
        ({"name": "conditional", "state": "h"}, "state must be"),
        ({"name": "word_by_word", "attention": {"name": "dot", "look": "hard"}}, "which only a decoder has: leave the"),
    ],
)
def test_a_wrong_pairing_is_refused(spec: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        pairing(spec, E, parts_of(ClassificationModel(hidden=4)))  # type: ignore[arg-type]
