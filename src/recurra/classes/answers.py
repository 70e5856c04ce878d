"""From probabilities to what the user sees: the answer, how sure it is, and what came next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import ClassificationDecoding

ABSTAINED = "-"
"""The answer where no class is probable enough."""


class ClassAnswer(NamedTuple):
    """What is printed, its log-probability, and what --json adds."""

    output: str
    score: float
    detail: dict[str, Any]


def one_class(p: NDArray[np.float64], labels: Sequence[str], decoding: ClassificationDecoding) -> ClassAnswer:
    """The most probable class, or none where that is less probable than `abstain`.

    >>> one_class(np.array([0.25, 0.75]), ["no", "yes"], ClassificationDecoding()).output
    'yes'
    >>> one_class(np.array([0.25, 0.75]), ["no", "yes"], ClassificationDecoding(abstain=0.9)).output
    '-'
    """
    listed = most_probable(p, labels, decoding.alternatives + 1)
    best, *others = listed
    detail: dict[str, Any] = {"label": best}
    is_sure = p.max() >= decoding.abstain
    if not is_sure:
        detail["abstained"] = True
    detail |= {"probabilities": listed, "alternatives": others}
    return ClassAnswer(best if is_sure else ABSTAINED, float(np.log(p.max().clip(1e-300))), detail)


def several_classes(p: NDArray[np.float64], labels: Sequence[str], decoding: ClassificationDecoding) -> ClassAnswer:
    """The classes that are at least as probable as `threshold`, in the order of the classes.

    >>> several_classes(np.array([0.75, 0.25, 0.5]), "abc", ClassificationDecoding()).output
    'a,c'
    """
    is_chosen = p >= decoding.threshold
    chosen = [label for label, is_its in zip(labels, is_chosen, strict=True) if is_its]
    listed = most_probable(p, labels, decoding.alternatives + 1)
    others = [label for label in listed if label not in chosen]
    detail = {"labels": chosen, "probabilities": listed, "alternatives": others}
    return ClassAnswer(",".join(chosen), float(np.log(np.where(is_chosen, p, 1 - p).clip(1e-300)).sum()), detail)


def numbers(values: NDArray[np.float64]) -> ClassAnswer:
    """Numbers in their own unit, separated by blanks.

    >>> numbers(np.array([0.5, 12000.25])).output
    '0.5 12000.2'
    """
    return ClassAnswer(" ".join(f"{number:.6g}" for number in values), 0.0, {"values": values.tolist()})


def most_probable(p: NDArray[np.float64], labels: Sequence[str], count: int) -> dict[str, float]:
    """The best classes with their probabilities, the best first."""
    return {labels[place]: round(float(p[place]), 6) for place in np.argsort(-p, kind="stable")[:count]}
