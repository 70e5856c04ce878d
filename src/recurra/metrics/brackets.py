"""Trees as sequences of tokens: (S (NP DT NN )NP (VP VB )VP )S, and how many of their brackets are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.references import Tokens

MIRRORED = {"(": ")", "[": "]", "{": "}"}

Span: TypeAlias = tuple[str, int, int]
"""The label of a bracket, with its kind, and the leaves from and before which it holds: ("(NP", 0, 2)."""


def opens(token: str) -> bool:
    """Whether a token opens a bracket: "(", "(NP"; not "()", which holds nothing."""
    return token[:1] in MIRRORED and not {*token[1:]} & {*MIRRORED, *MIRRORED.values()}


def closes(token: str) -> bool:
    """Whether a token closes a bracket: ")", ")NP"."""
    return token[:1] in MIRRORED.values() and not {*token[1:]} & {*MIRRORED, *MIRRORED.values()}


def spans(tokens: Tokens) -> Counter[Span]:
    """The brackets of a linearised tree, each with the leaves that it holds; leaves are all other tokens.

    Where brackets do not match, what closes nothing is passed over, and what is open at the end is closed there.

    >>> sorted(spans("(S (NP DT NN )NP (VP VB )VP )S".split()))
    [('(NP', 0, 2), ('(S', 0, 3), ('(VP', 2, 3)]
    """
    found: Counter[Span] = Counter()
    stack: list[tuple[str, int]] = []
    leaves = 0
    for token in tokens:
        if opens(token):
            stack.append((token, leaves))
        elif closes(token):
            if stack:
                label, start = stack.pop()
                found[label, start, leaves] += 1
        else:
            leaves += 1
    for label, start in stack:
        found[label, start, leaves] += 1
    return found


def is_balanced(tokens: Tokens) -> bool:
    """Whether every bracket is closed in its order, one with a label by the same label or by none.

    >>> [is_balanced(text.split()) for text in ("(A x )A", "(A x )", "(A (B x )A )B", "(A x")]
    [True, True, False, False]
    """
    stack: list[str] = []
    for token in tokens:
        if opens(token):
            stack.append(token)
        elif closes(token):
            if not stack:
                return False
            opened = stack.pop()
            if token not in (MIRRORED[opened[0]] + opened[1:], MIRRORED[opened[0]]):
                return False
    return not stack


def bracket_counts(references: Sequence[Sequence[Tokens]], answers: Sequence[Tokens]) -> NDArray[np.int64]:
    """(N, 3): right brackets, brackets of the reference and of the answer; of several references, the nearest.

    A bracket is right where one of the same label holds the same leaves in the reference; one that is there twice
    must be found twice.

    >>> bracket_counts([["(A (B x )B y )A".split()]], ["(A x (B y )B )A".split()]).tolist()
    [[1, 2, 2]]
    """
    rows = []
    for trees, answer in zip(references, answers, strict=True):
        said = spans(answer)
        each = [((said & gold).total(), gold.total(), said.total()) for gold in map(spans, trees)]
        rows.append(max(each, key=lambda counts: 2 * counts[0] / max(1, counts[1] + counts[2])))
    return np.array(rows, np.int64).reshape(-1, 3)
