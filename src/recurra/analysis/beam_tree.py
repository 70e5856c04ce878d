"""A beam search step by step: what was kept, what was dropped, what was finished."""

from __future__ import annotations

import math
from collections.abc import Mapping

from recurra.search.tree import Tree
from recurra.views.tree import BeamTree, End, Node, Step
from recurra.views.viewer import SEARCHED

DROPPED = 4
"""Of what a step dropped, so many of the best are shown."""


def beam_tree(tree: Tree, names: Mapping[int, str], caption: str = "", *, dropped: int = DROPPED) -> BeamTree:
    """The view of a search, whose tokens have names: of each step all that was kept, then the best that was dropped.

    >>> from recurra.search.tree import Layer
    >>> first = Layer([-1, -1], [7, 3], [-0.5, -2.5], [-0.5, -2.5], [True, False], [False, False])
    >>> end = Layer([0], [2], [-0.5], [-1.0], [True], [True])
    >>> found = beam_tree(Tree([first, end], [(1, 0)]), {7: "a", 3: "b", 2: "∎"})
    >>> [[(node.text, node.answer) for node in step.nodes] for step in found.steps]
    [[('a', 1), ('b', None)], [('a ∎', 1)]]
    """
    answers = _answers(tree)
    texts: list[list[str]] = []
    steps = []
    for number, layer in enumerate(tree.layers):
        own = [names[token] for token in layer.tokens]
        texts.append(
            [(f"{texts[-1][up]} " if number else "") + name for up, name in zip(layer.parents, own, strict=True)]
        )
        nodes = [
            Node(
                place,
                layer.parents[place] if number else None,
                own[place],
                math.exp(layer.log_probabilities[place]),
                layer.scores[place],
                layer.kept[place],
                layer.finished[place],
                answers.get((number, place)),
                texts[-1][place],
            )
            for place in range(len(own))
        ]
        nodes.sort(key=lambda node: (not node.kept, -node.score))
        kept = sum(node.kept for node in nodes)
        steps.append(Step(kept, len(own), nodes[: kept + dropped]))
    return BeamTree(steps, [End(*end) for end in tree.answers], title=SEARCHED, caption=caption)


def _answers(tree: Tree) -> dict[tuple[int, int], int]:
    """For places on the way to an answer, the best one."""
    found: dict[tuple[int, int], int] = {}
    for number, (layer, place) in reversed(list(enumerate(tree.answers, 1))):
        for level in range(layer, -1, -1):
            found[level, place] = number
            place = tree.layers[level].parents[place]
    return found
