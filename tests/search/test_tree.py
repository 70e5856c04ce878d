"""What a beam writes down of its way."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.search.beam import beam
from recurra.search.rules import NONE, Rules
from recurra.search.tree import Tree
from tests.search.tiny import begun, claims, row, tiny, walked, watch


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.sampled_from([NONE, Rules(forced=[0, 2]), Rules(prefix=[2], no_repeat=2)]),
    st.sampled_from([0, 0.9]),
)
def test_every_hypothesis_and_its_numbers_can_be_rebuilt(seed: int, width: int, rules: Rules, alpha: float) -> None:
    model, (moving, fixed) = tiny(seed, 5), begun(seed, 3)
    first, trees = torch.tensor([0, 1, 2]), list[Tree]()
    together = beam(
        model.step, first, moving, fixed, width=width, length=[4, 7, 5], ends=[4], best=width, rules=rules,
        length_penalty=alpha, watch=watch, coverage_penalty=0.3, places=fixed.places, record=trees,
    )  # fmt: skip
    assert len(trees) == 3
    for at, (found, tree) in enumerate(zip(together, trees, strict=True)):
        assert [tree.path(*answer) for answer in tree.answers] == [each.tokens for each in found]
        for each, (layer, place) in zip(found, tree.answers, strict=True):
            assert tree.layers[layer].scores[place] == pytest.approx(each.score, abs=1e-12)
            assert tree.layers[layer].kept[place]
            assert tree.layers[layer].finished[place]
        for number, layer_ in enumerate(tree.layers):
            assert sum(layer_.kept) <= width
            for place in range(len(layer_.tokens)):
                parent = layer_.parents[place]
                assert (parent == -1) == (number == 0)
                if number:
                    assert tree.layers[number - 1].kept[parent]
                    assert not tree.layers[number - 1].finished[parent]
        # One place, walked again.
        last = len(tree.layers) - 1
        place = seed % len(tree.layers[last].tokens)
        path = tree.path(last, place)
        start, source = row(moving, fixed, at)
        whole, _ = walked(model, at, start, source, path)
        before = walked(model, at, start, source, path[:-1])[0] if path[1:] else 0.0
        assert tree.layers[last].log_probabilities[place] == pytest.approx(whole - before, abs=1e-10)


def test_the_best_that_were_not_kept_are_there_too() -> None:
    model, (moving, fixed) = tiny(0, 9), begun(0, 1)
    trees: list[Tree] = []
    beam(model.step, torch.tensor([0]), moving, fixed, width=3, length=4, ends=[], record=trees)
    assert [len(layer.tokens) for layer in trees[0].layers] == [3, 9, 9, 9]
    assert [sum(layer.kept) for layer in trees[0].layers] == [3, 3, 3, 3]
    assert [sum(layer.finished) for layer in trees[0].layers] == [0, 0, 0, 3]


def test_a_tree_survives_json_and_recording_changes_nothing() -> None:
    model, (moving, fixed) = tiny(5, 6), begun(5, 2)
    first, trees = torch.tensor([0, 1]), list[Tree]()
    recorded = beam(model.step, first, moving, fixed, width=3, length=6, ends=[5], best=3, record=trees)
    plain = beam(model.step, first, moving, fixed, width=3, length=6, ends=[5], best=3)
    assert [*map(claims, recorded)] == [*map(claims, plain)]
    for tree in trees:
        assert Tree.from_json(tree.to_json()) == tree
        assert {*json.loads(tree.to_json())} == {"layers", "answers"}
