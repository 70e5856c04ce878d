"""What the docstrings of attention/ say, in numpy, one query and one place at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recurra.attention import Attention

Array = NDArray[np.float64]
Score = Callable[[Array, Array], list[float]]
"""A query and a place -> the score of each head."""

PHI: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "identity": lambda a: a,
}


def weights_of(attention: Attention) -> dict[str, Array]:
    return {name: value.detach().double().numpy() for name, value in attention.state_dict().items()}


def additive(w: dict[str, Array], activation: str = "tanh") -> Score:
    together = np.concatenate([w["from_query.weight"], w["from_memory.weight"]], axis=1)  # one matrix on [q; k]
    return lambda q, k: [float(w["v"] @ PHI[activation](together @ np.concatenate([q, k])))]


def bilinear(w: dict[str, Array]) -> Score:
    return lambda q, k: [float(q @ w["project.weight"] @ k)]


def dot(_: dict[str, Array]) -> Score:
    return lambda q, k: [sum(a * b for a, b in zip(q, k, strict=True))]


def scaled_dot(_: dict[str, Array]) -> Score:
    return lambda q, k: [q @ k / np.sqrt(len(k))]


def projected_dot(w: dict[str, Array], heads: int = 1) -> Score:
    u, m = np.split(w["from_query.weight"], heads), np.split(w["from_memory.weight"], heads)
    return lambda q, k: [(u[i] @ q) @ (m[i] @ k) / np.sqrt(len(u[i])) for i in range(heads)]


SCORES: dict[str, Callable[..., Score]] = {
    "additive": additive,
    "bilinear": bilinear,
    "dot": dot,
    "scaled_dot": scaled_dot,
    "projected_dot": projected_dot,
}


def softmax(scores: Array, real: NDArray[np.bool_]) -> Array:
    e = np.array([np.exp(s - scores[real].max()) if is_real else 0.0 for s, is_real in zip(scores, real, strict=True)])
    return e / e.sum() if real.any() else e


def attended(
    spec: dict[str, object], attention: Attention, queries: Array, places: Array, real: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The contexts (T, D) and weights (T, S) of the queries (T, ·) that look at one source (S, ·)."""
    w = weights_of(attention)
    options = {key: spec[key] for key in ("activation", "heads") if key in spec}
    score = SCORES[str(spec["name"])](w, **options)
    seen = np.stack([w["to_values.weight"] @ place for place in places]) if "to_values.weight" in w else places
    contexts, weights = [], []
    for q in queries:
        e = np.array([score(q, k) for k in places]).T  # (heads, S)
        alpha = np.stack([softmax(head, real) for head in e])
        shares = np.split(seen, len(alpha), axis=1)
        contexts.append(np.concatenate([a @ share for a, share in zip(alpha, shares, strict=True)]))
        weights.append(alpha.mean(0))
    return np.stack(contexts), np.stack(weights)
