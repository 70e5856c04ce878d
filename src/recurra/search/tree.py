"""What a beam weighed on its way, as plain data to be written down and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recurra.search.answers import Ending
from recurra.search.front import Candidates, Front, Kept
from recurra.search.rules import Flags, Ids
from recurra.search.score import divisor


class Layer(NamedTuple):
    """What was weighed as one more token: the `width` best after each hypothesis, a place for each."""

    parents: list[int]  # place in the layer before; -1 in the first
    tokens: list[int]
    log_probabilities: list[float]  # of the token after its parent
    scores: list[float]  # of the whole sequence, as if it ended here
    kept: list[bool]  # whether it was among the best of its sentence
    finished: list[bool]  # whether it was kept and goes no further: an end, or cut off at the length


class Tree(NamedTuple):
    """The search of one sentence.

    >>> layer = Layer(parents=[-1, -1], tokens=[7, 3], log_probabilities=[-0.1, -2.5], scores=[-0.1, -2.5],
    ...               kept=[True, False], finished=[False, False])
    >>> end = Layer([0], [2], [-0.2], [-0.3], [True], [True])
    >>> tree = Tree([layer, end], [(1, 0)])
    >>> tree.path(1, 0)
    [7, 2]
    >>> Tree.from_json(tree.to_json()) == tree
    True
    """

    layers: list[Layer]
    answers: list[tuple[int, int]]  # layer and place of the last token of each answer, best first

    def path(self, layer: int, place: int) -> list[int]:
        """The tokens that lead to a place, its own the last."""
        tokens = []
        for each in reversed(self.layers[: layer + 1]):
            tokens.append(each.tokens[place])
            place = each.parents[place]
        return tokens[::-1]

    def to_json(self) -> str:
        return json.dumps({"layers": [each._asdict() for each in self.layers], "answers": self.answers})

    @classmethod
    def from_json(cls, text: str) -> Tree:
        read = json.loads(text)
        return cls([Layer(**each) for each in read["layers"]], [(layer, place) for layer, place in read["answers"]])


class Recorder:
    """Writes down the steps of a beam."""

    def __init__(self, sentences: int, width: int, length_penalty: float) -> None:
        self.width = width
        self.length_penalty = length_penalty
        self.layers: list[list[Layer]] = [[] for _ in range(sentences)]
        self._nodes: list[Ids] = []  # for each level of the beam: the place in its tree of each of its places

    def add(self, front: Front, found: Candidates, kept: Kept, is_live: Flags) -> None:
        """Takes one step: what was continued, what could follow, what was kept and which of that lives on."""
        hypotheses, each = front.totals.shape[1], found.log_p.shape[1]
        is_real = (found.log_p > -np.inf) & (front.totals.reshape(-1, 1) > -np.inf)
        columns = (found.tokens[kept.rows] == kept.tokens[:, :, None]) & is_real[kept.rows]
        is_kept, is_finished = np.zeros_like(is_real), np.zeros_like(is_real)
        at, slot, column = np.nonzero(columns & (kept.totals > -np.inf)[:, :, None])
        is_kept[kept.rows[at, slot], column] = True
        is_finished[kept.rows[at, slot], column] = ~is_live[at, slot]
        is_shown = is_kept | (is_real & (is_real.cumsum(1) <= self.width))

        written = len(self._nodes) + 1
        parents = np.full(len(found.log_p), -1) if written == 1 else self._nodes[-1][front.places]
        scores = (front.totals.reshape(-1, 1) + found.log_p) / divisor(written, self.length_penalty)
        scores = scores + found.lacks.sum(1, keepdims=True)
        nodes = np.full(is_shown.shape, -1)
        for place, sentence in enumerate(front.sentences):
            mine = slice(place * hypotheses, (place + 1) * hypotheses)
            shown = is_shown[mine]
            nodes[mine][shown] = np.arange(shown.sum())
            self.layers[sentence].append(
                Layer(
                    np.repeat(parents[mine], each).reshape(shown.shape)[shown].tolist(),
                    found.tokens[mine][shown].tolist(),
                    found.log_p[mine][shown].tolist(),
                    scores[mine][shown].tolist(),
                    is_kept[mine][shown].tolist(),
                    is_finished[mine][shown].tolist(),
                )
            )
        of_kept = np.full(kept.totals.shape, -1)
        of_kept[at, slot] = nodes[kept.rows[at, slot], column]
        self._nodes.append(of_kept.ravel())

    def trees(self, answers: Sequence[Sequence[Ending]]) -> list[Tree]:
        """The tree of each sentence."""
        return [
            Tree(layers, [(each.level, int(self._nodes[each.level][each.place])) for each in of])
            for layers, of in zip(self.layers, answers, strict=True)
        ]
