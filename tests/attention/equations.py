"""What the docstrings of attention/ say, in numpy, one query and one place at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

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


class Monotonic:
    def __init__(self, w: dict[str, Array]) -> None:
        self.a, self.pace, self.place = np.log1p(np.exp(-w["strength"])), w["pace"], -1.0

    def terms(self, places: int) -> Array:
        return np.array([-self.a * (j - self.place - self.pace) ** 2 for j in range(places)])

    def look(self, alpha: Array) -> None:
        self.place = sum(j * weight for j, weight in enumerate(alpha))


class Coverage:
    def __init__(self, w: dict[str, Array]) -> None:
        self.a, self.looks = -w["bonus"], [np.zeros(1)]

    def terms(self, places: int) -> Array:
        return -self.a * np.sum([np.broadcast_to(look, places) for look in self.looks], axis=0)

    def look(self, alpha: Array) -> None:
        self.looks.append(alpha)


class Location:
    def __init__(self, w: dict[str, Array]) -> None:
        self.w, self.last = w, np.zeros(0)

    def terms(self, places: int) -> Array:
        around = self.w["features.weight"]
        reach = around.shape[1] // 2
        f = np.tile(self.w["features.bias"], (places, 1))
        for j in range(places):
            for i in range(-reach, reach + 1):
                if 0 <= j + i < len(self.last):
                    f[j] += around[:, reach + i] * self.last[j + i]
        return np.tanh(f) @ self.w["to_score.weight"][0]

    def look(self, alpha: Array) -> None:
        self.last = alpha


Looking: TypeAlias = Monotonic | Coverage | Location
TERMS: dict[str, type[Looking]] = {"monotonic": Monotonic, "coverage": Coverage, "location": Location}


def terms_of(spec: dict[str, Any], w: dict[str, Array]) -> list[Looking]:
    names = [term if isinstance(term, str) else term["name"] for term in spec.get("terms", ())]
    own = [{key.removeprefix(f"terms.{i}."): w[key] for key in w if f"terms.{i}." in key} for i in range(len(names))]
    return [TERMS[name](weights) for name, weights in zip(names, own, strict=True)]


def softmax(scores: Array, real: NDArray[np.bool_]) -> Array:
    e = np.array([np.exp(s - scores[real].max()) if is_real else 0.0 for s, is_real in zip(scores, real, strict=True)])
    return e / e.sum() if real.any() else e


def attended(
    spec: dict[str, Any], attention: Attention, queries: Array, places: Array, real: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The contexts (T, D) and weights (T, S) of the queries (T, ·) that look at one source (S, ·)."""
    w = weights_of(attention)
    options = {key: spec[key] for key in ("activation", "heads") if key in spec}
    score, terms = SCORES[spec["name"]](w, **options), terms_of(spec, w)
    seen = np.stack([w["to_values.weight"] @ place for place in places]) if "to_values.weight" in w else places
    contexts, weights = [], []
    for q in queries:
        e = np.array([score(q, k) for k in places]).T  # (heads, S)
        e = e + sum(term.terms(len(places)) for term in terms)
        alpha = np.stack([softmax(head, real) for head in e])
        shares = np.split(seen, len(alpha), axis=1)
        contexts.append(np.concatenate([a @ share for a, share in zip(alpha, shares, strict=True)]))
        weights.append(alpha.mean(0))
        for term in terms:
            term.look(weights[-1])
    return np.stack(contexts), np.stack(weights)
