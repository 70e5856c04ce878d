"""The oracle: every labelling of one row written out, its score added up term by term."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from recurra.heads import CRF, UNLABELLED

WELL_FORMED = {
    "none": r".*",
    "bio": r"(_|bi*|BI*)*",  # one letter per tag: lower case for the type x, upper case for y
    "bioes": r"(_|s|S|bi*e|BI*E)*",
}


class Labellings(NamedTuple):
    labels: NDArray[np.int64]  # (N, T)
    scores: NDArray[np.float64]  # (N,)


def every_labelling(head: CRF, features: Tensor, *, scheme: str = "none") -> Labellings:
    """Those of one row of features, (T, I), that are well-formed in a scheme."""
    W, b, A, start, end = (
        parameter.detach().numpy().astype(np.float64)
        for parameter in (head.readout.weight, head.readout.bias, head.transitions, head.start, head.end)
    )
    e = features.detach().numpy().astype(np.float64) @ W.T + b
    all_labels = itertools.product(range(len(head.labels)), repeat=len(e))
    kept = [y for y in all_labels if scheme == "none" or is_well_formed(head, y, scheme)]
    labels = np.array(kept, dtype=np.int64).reshape(len(kept), len(e))
    scores = np.zeros(len(kept))
    for t in range(len(e)):
        scores += e[t][labels[:, t]]
        scores += A[labels[:, t - 1], labels[:, t]] if t else start[labels[:, 0]] + end[labels[:, -1]]
    return Labellings(labels, scores)


def is_well_formed(head: CRF, y: Sequence[int], scheme: str) -> bool:
    tags = [head.labels[label] for label in y]
    letters = "".join("_" if tag == "O" else tag[0].lower() if tag.endswith("-x") else tag[0] for tag in tags)
    return re.fullmatch(WELL_FORMED[scheme], letters) is not None


def log_sum(scores: NDArray[np.float64]) -> float:
    return float(scores.max() + np.log(np.exp(scores - scores.max()).sum()))


def loss(head: CRF, features: Tensor, targets: Sequence[int]) -> float:
    """-log of the share of all labellings that agree with the targets where they are known."""
    labels, scores = every_labelling(head, features)
    known = [t for t, target in enumerate(targets) if target != UNLABELLED]
    agree = (labels[:, known] == np.array(targets, dtype=np.int64)[known]).all(1)
    return log_sum(scores) - log_sum(scores[agree])


def marginals(head: CRF, features: Tensor, *, scheme: str) -> NDArray[np.float64]:
    """(T, L)"""
    labels, scores = every_labelling(head, features, scheme=scheme)
    p = np.exp(scores - log_sum(scores))
    return np.array([[p[column == label].sum() for label in range(len(head.labels))] for column in labels.T]).reshape(
        len(features), len(head.labels)
    )
