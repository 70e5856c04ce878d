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


def seeing(w: dict[str, Array], q: Array, k: Array, f: Array, activation: str = "tanh") -> list[float]:
    a = w["from_query.weight"] @ q + w["from_memory.weight"] @ k + w["from_location.weight"] @ f
    return [float(w["v"] @ PHI[activation](a))]


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
    def __init__(self, w: dict[str, Array], columns: int | None) -> None:
        self.a, self.pace, self.place = np.log1p(np.exp(-w["strength"])), w["pace"], -1.0
        self.columns = columns

    def number(self, j: int) -> int:
        return j if self.columns is None else j % self.columns

    def terms(self, places: int) -> Array:
        return np.array([-self.a * (self.number(j) - self.place - self.pace) ** 2 for j in range(places)])

    def look(self, alpha: Array) -> None:
        self.place = sum(self.number(j) * weight for j, weight in enumerate(alpha))


class Coverage:
    def __init__(self, w: dict[str, Array], columns: int | None) -> None:
        self.a, self.looks = -w["bonus"], [np.zeros(1)]

    def terms(self, places: int) -> Array:
        return -self.a * np.sum([np.broadcast_to(look, places) for look in self.looks], axis=0)

    def look(self, alpha: Array) -> None:
        self.looks.append(alpha)


class Window:
    """Each place asks every other whether it lies within reach."""

    def __init__(
        self, w: dict[str, Array], columns: int | None, of: str = "last", dimensions: int = 1, **_: object
    ) -> None:
        self.F, self.b, self.columns, self.of, self.dimensions = w["weight"], w["bias"], columns, of, dimensions
        self.looks: list[Array] = []

    def features(self, places: int) -> Array:
        width = round(self.F.shape[1] ** (1 / self.dimensions))
        reach = width // 2
        seen = self.looks[-1:] if self.of == "last" else self.looks
        f = np.tile(self.b, (places, 1))
        for j, i in np.ndindex(places, places):
            (r, c), (row, column) = divmod(j, self.columns or places), divmod(i, self.columns or places)
            down, right = row - r, column - c
            if abs(right) > reach or abs(down) > (0 if self.dimensions == 1 else reach):
                continue
            at = reach + right if self.dimensions == 1 else (reach + down) * width + reach + right
            f[j] += self.F[:, at] * sum(alpha[i] for alpha in seen)
        return f

    def look(self, alpha: Array) -> None:
        self.looks.append(alpha)


class Location:
    def __init__(self, w: dict[str, Array], columns: int | None, **options: Any) -> None:
        self.u = w["to_score.weight"][0]
        self.window = Window(within(w, "features."), columns, **options)

    def terms(self, places: int) -> Array:
        return np.tanh(self.window.features(places)) @ self.u

    def look(self, alpha: Array) -> None:
        self.window.look(alpha)


def within(w: dict[str, Array], start: str) -> dict[str, Array]:
    return {name.removeprefix(start): value for name, value in w.items() if name.startswith(start)}


Looking: TypeAlias = Monotonic | Coverage | Location
TERMS: dict[str, Callable[..., Looking]] = {"monotonic": Monotonic, "coverage": Coverage, "location": Location}


def terms_of(spec: dict[str, Any], w: dict[str, Array], columns: int | None = None) -> list[Looking]:
    found = []
    for number, term in enumerate(spec.get("terms", ())):
        table = {"name": term} if isinstance(term, str) else term
        options = {key: table[key] for key in ("of", "dimensions") if key in table}
        found.append(TERMS[table["name"]](within(w, f"terms.{number}."), columns, **options))
    return found


def softmax(scores: Array, real: NDArray[np.bool_]) -> Array:
    e = np.array([np.exp(s - scores[real].max()) if is_real else 0.0 for s, is_real in zip(scores, real, strict=True)])
    return e / e.sum() if real.any() else e


def local(look: dict[str, Any], w: dict[str, Array], q: Array, t: int, e: Array, real: NDArray[np.bool_]) -> Array:
    """The weights of the scores (S,) of one head around a place p."""
    D = look.get("reach", 10)
    if look.get("centre") == "monotonic":
        p = float(t)
    else:
        p = real.sum() / (1 + np.exp(-w["look.v"] @ np.tanh(w["look.from_query.weight"] @ q)))
    alpha = softmax(e, np.array([is_real and p - D <= s <= p + D for s, is_real in enumerate(real)]))
    if look.get("centre") == "monotonic":
        return alpha
    return np.array([a * np.exp(-((s - p) ** 2) / (2 * (D / 2) ** 2)) for s, a in enumerate(alpha)])


def attended(
    spec: dict[str, Any],
    attention: Attention,
    queries: Array,
    places: Array,
    real: NDArray[np.bool_],
    columns: int | None = None,
) -> tuple[Array, Array]:
    """The contexts (T, D) and weights (T, S) of the queries (T, ·) that look at one source (S, ·)."""
    w = weights_of(attention)
    options = {key: spec[key] for key in ("activation", "heads") if key in spec}
    score, terms = SCORES[spec["name"]](w, **options), terms_of(spec, w, columns)
    window = Window(within(w, "location."), columns, **spec["location"]) if "location" in spec else None
    seen = np.stack([w["to_values.weight"] @ place for place in places]) if "to_values.weight" in w else places
    contexts, weights = [], []
    for t, q in enumerate(queries):
        if window is None:
            e = np.array([score(q, k) for k in places]).T  # (heads, S)
        else:
            features = window.features(len(places))
            e = np.array([seeing(w, q, k, f, **options) for k, f in zip(places, features, strict=True)]).T
        e = e + sum(term.terms(len(places)) for term in terms)
        look = spec.get("look")
        alpha = np.stack([softmax(head, real) if look is None else local(look, w, q, t, head, real) for head in e])
        shares = np.split(seen, len(alpha), axis=1)
        beta = 1 / (1 + np.exp(-w["gate.weight"][0] @ q - w["gate.bias"][0])) if spec.get("gate") else 1.0
        contexts.append(beta * np.concatenate([a @ share for a, share in zip(alpha, shares, strict=True)]))
        weights.append(alpha.mean(0))
        for part in [*terms, *([] if window is None else [window])]:
            part.look(weights[-1])
    return np.stack(contexts), np.stack(weights)
