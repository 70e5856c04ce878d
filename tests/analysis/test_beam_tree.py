"""The tree of a beam search: what it shows is what the search did."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from recurra.analysis.beam_tree import beam_tree
from recurra.errors import ConfigError, DataError
from recurra.search.tree import Layer, Tree
from recurra.training.explaining import example_of
from recurra.training.trained import Trained
from recurra.views.tree import BeamTree
from recurra.views.view import labels
from tests.analysis import small_runs
from tests.analysis.asking import tree_of


@torch.no_grad()
def kept_by_hand(model: Trained, text: str, width: int, steps: int) -> list[set[str]]:
    """Of each step the kept hypotheses, found one by one without a search of ours: each walks from the start alone."""
    task: Any = model.task
    network: Any = model.model
    batch = task.batch([task.encode(example_of(task, text))])
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    found = []
    for number in range(steps):
        weighed = []
        for total, path in live:
            token, moving, fixed = network.start(batch)
            for each in [*path, None]:
                log_p, moving = network.step(token, moving, fixed)
                token = torch.tensor([0 if each is None else each])
            row = log_p[0].double()
            row[list(task.search_tokens.never)] = -torch.inf
            if number < task.settings.decoding.min_length:
                row[task.search_tokens.end] = -torch.inf
            weighed += [(total + float(p), [*path, token]) for token, p in enumerate(row) if p > -torch.inf]
        best = sorted(weighed, key=lambda each: -each[0])[:width]
        tokens = task.texts.target.vocabulary.tokens
        found.append({" ".join(labels([tokens[number] for number in path])) for _, path in best})
        live = [(total, path) for total, path in best if path[-1] != task.search_tokens.end]
    return found


@pytest.mark.parametrize("width", [1, 3])
def test_what_is_shown_as_kept_is_what_a_beam_by_hand_keeps(width: int) -> None:
    model = small_runs.writer(f"decoding.width={width}")
    tree = tree_of(model, example_of(model.task, "cat"))
    shown = [{node.text for node in step.nodes if node.kept} for step in tree.steps]
    assert shown == kept_by_hand(model, "cat", width, len(shown))
    [answer] = model.predict(["cat"], detail=True)
    last, place = tree.answers[0]
    best = next(node for node in tree.steps[last].nodes if node.place == place)
    assert best.text.removesuffix(" ∎") == " ".join(answer.detail["tokens"])
    assert best.score == pytest.approx(answer.score, abs=1e-5)
    assert best.answer == 1


def made(*names: str, dropped: int = 4) -> BeamTree:
    first = Layer([-1] * 3, [0, 1, 2], [-0.1, -1.0, -3.0], [-0.1, -1.0, -3.0], [True, True, False], [False] * 3)
    second = Layer(
        [0, 0, 1], [3, 1, 3], [-0.2, -4.0, -0.5], [-0.3, -4.1, -1.5], [True, False, True], [True, False, True]
    )
    return beam_tree(Tree([first, second], [(1, 0), (1, 2)]), dict(enumerate(names)), "of <two>", dropped=dropped)


def test_the_text_names_kept_finished_and_dropped_with_their_scores() -> None:
    assert made("a", "b", "c", "∎", dropped=0).text().splitlines() == [
        *("of <two>", "step 1: keeps 2 of 3", "  ●  -0.100 a", "  ●  -1.000 b"),
        *("  ·         and 1 more that were dropped", "step 2: keeps 2 of 3"),
        *("  ■  -0.300 a ∎   answer 1", "  ■  -1.500 b ∎   answer 2", "  ·         and 1 more that were dropped"),
    ]


def test_tokens_are_escaped_and_every_part_knows_its_step() -> None:
    html = made("<img onerror=x>", "שלום", "日本", "∎").page()
    assert "<img" not in html
    assert html.count("&lt;img onerror=x&gt;") > 1
    assert {*re.findall(r'data-step="(\d+)"', html)} == {"0", "1"}
    assert "Step 2 keeps 2 of 3" in html


def test_what_has_no_tree_is_said() -> None:
    greedy = small_runs.writer().with_settings(["decoding.search=greedy"])
    with pytest.raises(ConfigError, match=r"'greedy': only beam search has a tree to show. Add --set decoding.search="):
        tree_of(greedy, example_of(greedy.task, "cat"))
    with pytest.raises(DataError, match="the search made no steps, so there is no tree to show"):
        beam_tree(Tree([], []), {})
