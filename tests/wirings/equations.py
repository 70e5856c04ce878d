"""What the docstrings of wirings/ say, in numpy, one row and one step at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.attention import Attention
from recurra.wirings import Wiring
from tests.attention import equations as scores
from tests.cells import equations as cells

Array = NDArray[np.float64]
Values = dict[str, Array]


def weights_of(wiring: Wiring) -> Values:
    return {name: value.detach().numpy() for name, value in wiring.state_dict().items()}


def below(weights: Values, prefix: str) -> Values:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


class Look:
    """An attention that looks at one source, query after query."""

    def __init__(self, spec: dict[str, Any], attention: Attention, places: Array) -> None:
        w = scores.weights_of(attention)
        options = {key: spec[key] for key in ("activation", "heads") if key in spec}
        self.score, self.terms, self.places = (
            scores.SCORES[spec["name"]](w, **options),
            scores.terms_of(spec, w),
            places,
        )
        self.seen = places @ w["to_values.weight"].T if "to_values.weight" in w else places
        self.spec, self.w, self.steps = spec, w, 0

    def __call__(self, query: Array) -> tuple[Array, Array]:
        e = np.array([self.score(query, k) for k in self.places]).T + sum(t.terms(len(self.places)) for t in self.terms)
        alpha = np.exp(e) / np.exp(e).sum(1, keepdims=True)  # (heads, S)
        if "look" in self.spec:
            real = np.ones(len(self.places), np.bool_)
            alpha = np.stack([scores.local(self.spec["look"], self.w, query, self.steps, head, real) for head in e])
        self.steps += 1
        shares = np.split(self.seen, len(alpha), axis=1)
        mean = alpha.mean(0)
        for term in self.terms:
            term.look(mean)
        return np.concatenate([a @ share for a, share in zip(alpha, shares, strict=True)]), mean


class Stack:
    """Layers of cells that read one row, with ways past all but the lowest and a mix of all of them."""

    def __init__(self, cell: str, weights: Values, states: list[Values], skip: str = "none", mix: str = "last") -> None:
        self.cell, self.weights, self.states = getattr(cells, cell), weights, states
        self.skip, self.mix = skip, mix

    def __call__(self, x: Array, under: Array | None = None) -> Array:
        """`under` is the output of a layer below these, which counts as one of them."""
        outputs = [] if under is None else [under]
        for number, state in enumerate(self.states):
            own = below(self.weights, f"cells.{number}.0.")
            found = self.cell(own, {}, x, state, lambda a: a, lambda a: a)
            self.states[number] = {name: found[name] for name in state}
            x = found["h"]
            if outputs and self.skip == "residual":
                x = x + outputs[-1]
            if outputs and self.skip == "highway":
                way = below(self.weights, f"transforms.{len(outputs) - 1}.")
                t = cells.sigma(way["weight"] @ outputs[-1] + way["bias"])
                x = t * x + (1 - t) * outputs[-1]
            outputs.append(x)
        return self.mixed(outputs)

    def mixed(self, outputs: list[Array]) -> Array:
        if self.mix == "concat":
            return np.concatenate(outputs)
        if self.mix == "mean":
            return np.asarray(sum(outputs) / len(outputs))
        if self.mix == "learned":
            shares = np.exp(self.weights["mix_weights"])
            return np.asarray(self.weights["mix_scale"] * (shares / shares.sum()) @ np.stack(outputs))
        return outputs[-1]


def written(
    name: str,
    query: str | None,
    cell: str,
    spec: dict[str, Any],
    wiring: Wiring,
    xs: Array,
    starts: list[Values],
    places: Array,
    summary: Array,
    readout: str = "tanh",
) -> tuple[Array, Array]:
    """Features (T, F) and weights (T, S) of one row, whose source has the places (S, D)."""
    w = weights_of(wiring)
    options = (wiring.shape.skip, wiring.shape.mix)
    if name == "alone":
        cells_ = Stack(cell, below(w, "cells."), starts, *options)
        return np.stack([features(w, readout, x, cells_(x), summary) for x in xs]), np.zeros(0)
    look = Look(spec, wiring.attention, places)  # type: ignore[arg-type]  # a Module
    fed, found = np.zeros(len(w["readout.mix.bias"]) // (2 if readout == "maxout" else 1)), []
    if name in ("outside", "feeding"):
        all_layers = Stack(cell, below(w, "cells."), starts, *options)
        s = all_layers.mixed([state["h"] for state in starts])
    else:
        first = Stack(cell, below(w, "first."), starts[:1])
        above = Stack(cell, below(w, "above."), starts[1:], *options) if starts[1:] else None
        s = starts[0]["h"] if above is None else above.mixed([state["h"] for state in starts])
    for x in xs:
        if name == "outside":
            before = s
            s = all_layers(x)
            context, alpha = look(before if query == "previous" else s)
        elif name == "feeding":
            s = all_layers(np.concatenate([x, fed]))
            context, alpha = look(s)
        elif name == "between":
            before = first.states[0]["h"]
            lower = first(x)
            context, alpha = look(before if query == "previous" else lower)
            assert above is not None, "it stands between two layers"
            s = above(np.concatenate([lower, context]), lower)
        elif name == "inside":
            before = s
            context, alpha = look(first.states[0]["h"])
            s = first(np.concatenate([x, context]))
            s = s if above is None else above(s, s)
        else:
            assert name == "conditional"
            context, alpha = look(first(x))
            second = Stack(cell, below(w, "second."), first.states)  # goes on from where the first one is
            s = second(context)
            s = s if above is None else above(s, s)
        told = before if (name, readout) == ("inside", "maxout") else s  # t̃ = U s_{i-1} + V E y_{i-1} + C c_i
        fed = features(w, readout, x, told, context, summary)
        found.append((fed, alpha))
    return np.stack([each[0] for each in found]), np.stack([each[1] for each in found])


def features(w: Values, readout: str, x: Array, *parts: Array) -> Array:
    if readout == "maxout":
        t = w["readout.mix.weight"] @ np.concatenate([*parts, x]) + w["readout.mix.bias"]
        return np.array([max(t[2 * j], t[2 * j + 1]) for j in range(len(t) // 2)])
    return np.asarray(np.tanh(w["readout.mix.weight"] @ np.concatenate(parts) + w["readout.mix.bias"]))
