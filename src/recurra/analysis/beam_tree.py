"""A beam search step by step: what was kept, what was dropped, what was finished, as numbers and as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from recurra.errors import DataError
from recurra.search.tree import Tree
from recurra.text.visible import without_controls

DROPPED = 4
"""Of what a step dropped, so many of the best are shown."""


class Node(NamedTuple):
    """One token after a hypothesis."""

    place: int  # in the layer of the tree
    parent: int | None  # place in the layer before
    token: str
    probability: float  # of the token after its parent
    score: float  # of the whole so far, as if it ended here
    kept: bool
    finished: bool
    answer: int | None  # on the way to which answer: 1 is the best
    text: str  # the tokens up to here


@dataclass(frozen=True, eq=False)
class BeamTree:
    """The search for one answer: a tree, and what its tokens are called.

    >>> from recurra.search.tree import Layer
    >>> first = Layer([-1, -1], [7, 3], [-0.5, -2.5], [-0.5, -2.5], [True, False], [False, False])
    >>> end = Layer([0], [2], [-0.5], [-1.0], [True], [True])
    >>> tree = BeamTree(Tree([first, end], [(1, 0)]), {7: "a", 3: "b", 2: "∎"})
    >>> [[(node.text, node.answer) for node in step] for step in tree.steps]
    [[('a', 1), ('b', None)], [('a ∎', 1)]]
    """

    tree: Tree
    names: dict[int, str]
    title: str = ""
    dropped: int = DROPPED

    def __post_init__(self) -> None:
        if not self.tree.layers or not self.tree.answers:
            raise DataError("the search took no step, so there is no tree to show.")

    @cached_property
    def steps(self) -> list[list[Node]]:
        """What is shown of each step: all that was kept, then the best of what was dropped, best first."""
        answers = self._answers()
        texts: list[list[str]] = []
        found = []
        for number, layer in enumerate(self.tree.layers):
            own = [self.names[token] for token in layer.tokens]
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
            found.append(nodes[: kept + self.dropped])
        return found

    def _answers(self) -> dict[tuple[int, int], int]:
        """For places on the way to an answer, the best one."""
        found: dict[tuple[int, int], int] = {}
        for number, (layer, place) in reversed(list(enumerate(self.tree.answers, 1))):
            for level in range(layer, -1, -1):
                found[level, place] = number
                place = self.tree.layers[level].parents[place]
        return found

    def count(self, step: int) -> tuple[int, int]:
        """How many of a step were kept, and how many were weighed."""
        layer = self.tree.layers[step]
        return sum(layer.kept), len(layer.tokens)


def as_json(tree: BeamTree) -> dict[str, Any]:
    """For a program: what is shown of each step, and how many hypotheses it kept and weighed.

    >>> from recurra.search.tree import Layer
    >>> first = Layer([-1, -1], [7, 3], [-0.5, -2.5], [-0.5, -2.5], [True, False], [True, False])
    >>> step = as_json(BeamTree(Tree([first], [(0, 0)]), {7: "a", 3: "b"}))["steps"][0]
    >>> step["kept"], step["weighed"], step["nodes"][0]["token"], step["nodes"][0]["answer"]
    (1, 2, 'a', 1)
    """
    steps = []
    for number, nodes in enumerate(tree.steps):
        kept, weighed = tree.count(number)
        steps.append({"kept": kept, "weighed": weighed, "nodes": [_node_in_json(node) for node in nodes]})
    ends = [{"step": step, "place": place} for step, place in tree.tree.answers]
    return {"title": tree.title, "steps": steps, "answers": ends}


def _node_in_json(node: Node) -> dict[str, Any]:
    return {**node._asdict(), "probability": round(node.probability, 5), "score": round(node.score, 5)}


def as_text(tree: BeamTree) -> str:
    """For the terminal: step by step, what was kept (●), finished (■) and dropped (·), with scores.

    >>> from recurra.search.tree import Layer
    >>> first = Layer([-1, -1], [7, 3], [-0.5, -2.5], [-0.5, -2.5], [True, False], [False, False])
    >>> end = Layer([0], [2], [-0.5], [-1.0], [True], [True])
    >>> print(as_text(BeamTree(Tree([first, end], [(1, 0)]), {7: "a", 3: "b", 2: "∎"}, "A beam of width 1")))
    A beam of width 1
    step 1: keeps 1 of 2
      ●  -0.500 a
      ·  -2.500 b
    step 2: keeps 1 of 1
      ■  -1.000 a ∎   answer 1
    """
    lines = [without_controls(tree.title)] if tree.title else []
    last = dict(_last(tree))
    for number, nodes in enumerate(tree.steps):
        kept, weighed = tree.count(number)
        lines.append(f"step {number + 1}: keeps {kept} of {weighed}")
        for node in nodes:
            mark = "■" if node.finished else "●" if node.kept else "·"
            which = f"   answer {last[number, node.place]}" if (number, node.place) in last else ""
            lines.append(f"  {mark} {node.score:>7.3f} {node.text}{which}")
        hidden = weighed - len(nodes)
        if hidden:
            lines.append(f"  ·         and {hidden} more that were dropped")
    return "\n".join(lines)


def _last(tree: BeamTree) -> Sequence[tuple[tuple[int, int], int]]:
    """Where each answer ends."""
    return [(place, number) for number, place in enumerate(tree.tree.answers, 1)]
