"""SPEC's equations N1 to N4 in numpy float64, one pair and one step at a time: the oracle of the pairings.

Written from the specification, not from the code: each function takes the weights of a pairing by name, two texts
(T₁, E) and (T₂, E), and gives the vector of the pair and the weights (·, T₁) of the second text.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tests.cells.equations import lstm

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
State = dict[str, Array]
Found = tuple[Array, Array | None]


def under(p: Weights, name: str) -> dict[str, Array]:
    """The weights of a part."""
    return {key.removeprefix(f"{name}."): value for key, value in p.items() if key.startswith(f"{name}.")}


def softmax(e: Array) -> Array:
    e = np.exp(e - e.max())
    return np.asarray(e / e.sum())


def read(p: Weights, x: Array, starts: list[State] | None = None) -> tuple[Array, list[State]]:
    """One layer of LSTM cells over a text, in as many directions as there are cells: outputs, and the last states."""
    ways = [number for number in range(2) if f"cells.0.{number}.from_state" in p]
    outputs, ends = [], []
    for way in ways:
        own = under(p, f"cells.0.{way}")
        n = own["from_state"].shape[1]
        state = {"h": np.zeros(n), "c": np.zeros(n)} if starts is None else starts[way]
        found = np.zeros((len(x), n))
        for t in range(len(x)) if way == 0 else reversed(range(len(x))):
            state = lstm(own, {}, x[t], state, lambda h: h, lambda c: c)
            found[t] = state["h"]
        outputs.append(found)
        ends.append(state)
    return np.concatenate(outputs, 1), ends


def last(ends: list[State]) -> Array:
    return np.concatenate([state["h"] for state in ends])


def feed_forward(p: Weights, x: Array) -> Array:
    for number in range(len(p) // 2):
        x = np.maximum(x @ p[f"layers.{number}.weight"].T + p[f"layers.{number}.bias"], 0)
    return x


def additive(p: Weights, query: Array, y: Array) -> Array:
    """softmax(wᵀ tanh(W_y Y + W_q q ⊗ 1))."""
    return softmax(
        np.array([p["v"] @ np.tanh(p["from_memory.weight"] @ k + p["from_query.weight"] @ query) for k in y])
    )


def conditioned(p: Weights, a: Array, b: Array, *, only_cell: bool = True) -> tuple[Array, Array, Array]:
    """Y, h_1 … h_N and the last h, by a reader that starts from the memory of another after a delimiter."""
    y, ends = read(under(p, "first"), a)
    starts = [{"h": np.zeros_like(end["h"]) if only_cell else end["h"], "c": end["c"]} for end in ends]
    h, ends = read(under(p, "second"), np.concatenate([p["delimiter"][None], b]), starts)
    return y, h[1:], last(ends)


def looking(p: Weights, h: Array, y: Array) -> tuple[Array, Array]:
    """r_N and α_1 … α_N of attention word by word."""
    r, found = np.zeros(y.shape[1]), []
    for query in h:
        alpha = additive(under(p, "attention"), np.concatenate([query, r]), y)
        found.append(alpha)
        r = y.T @ alpha + np.tanh(p["from_past.weight"] @ r)
    return r, np.stack(found)


def siamese(p: Weights, a: Array, b: Array) -> Found:
    u, v = (read(under(p, "encoder.recurrent"), text)[0].max(0) for text in (a, b))
    return feed_forward(under(p, "mlp"), np.concatenate([u, v, abs(u - v), u * v])), None


def conditional(p: Weights, a: Array, b: Array) -> Found:
    return conditioned(under(p, "reader"), a, b)[2], None


def conditional_attention(p: Weights, a: Array, b: Array) -> Found:
    y, _, h = conditioned(under(p, "reader"), a, b, only_cell=False)
    alpha = additive(under(p, "attention"), h, y)
    return np.tanh(p["from_seen.weight"] @ (y.T @ alpha) + p["from_last.weight"] @ h), alpha[None]


def word_by_word(p: Weights, a: Array, b: Array) -> Found:
    y, h, end = conditioned(under(p, "reader"), a, b)
    r, alphas = looking(under(p, "looking"), h, y)
    return np.tanh(p["from_seen.weight"] @ r + p["from_last.weight"] @ end), alphas


def attentive(p: Weights, a: Array, b: Array) -> Found:
    y, _ = read(under(p, "document"), a)
    u = last(read(under(p, "question"), b)[1])
    s = additive(under(p, "attention"), u, y)
    return np.tanh(p["from_seen.weight"] @ (y.T @ s) + p["from_question.weight"] @ u), s[None]


def impatient(p: Weights, a: Array, b: Array) -> Found:
    y, _ = read(under(p, "document"), a)
    q, ends = read(under(p, "question"), b)
    r, s = looking(under(p, "looking"), q, y)
    return np.tanh(p["from_seen.weight"] @ r + p["from_question.weight"] @ last(ends)), s


def decomposable(p: Weights, a: Array, b: Array) -> Found:
    return _decomposable(p, a @ p["project.weight"].T, b @ p["project.weight"].T)


def decomposable_within(p: Weights, a: Array, b: Array, distance: int = 2) -> Found:
    """With [a_i; a′_i], a′_i = Σ_j softmax_j(F′(a_i)·F′(a_j) + d_{i−j}) a_j."""
    texts = []
    for text in (a @ p["project.weight"].T, b @ p["project.weight"].T):
        f, d = feed_forward(under(p, "within.f"), text), p["within.bias"]
        rows = []
        for i in range(len(text)):
            bias = [d[min(max(i - j, -distance), distance) + distance] for j in range(len(text))]
            rows.append(np.concatenate([text[i], text.T @ softmax(f @ f[i] + np.array(bias))]))
        texts.append(np.stack(rows))
    return _decomposable(p, *texts)


def decomposable_read(p: Weights, a: Array, b: Array) -> Found:
    """Over a recurrent network, with differences and products, and the mean and the largest of compared words."""
    return _decomposable(p, *(read(under(p, "stack"), text)[0] for text in (a, b)), plain=False)


def _decomposable(p: Weights, a: Array, b: Array, *, plain: bool = True) -> Found:
    F, G = under(p, "f"), under(p, "g")
    e = np.array([[feed_forward(F, x) @ feed_forward(F, z) for z in b] for x in a])
    to_second = np.stack([softmax(row) for row in e])  # (T₁, T₂)
    to_first = np.stack([softmax(column) for column in e.T])  # (T₂, T₁)
    vectors = []
    for text, seen in ((a, to_second @ b), (b, to_first @ a)):
        parts = [text, seen] if plain else [text, seen, text - seen, text * seen]
        compared = feed_forward(G, np.concatenate(parts, 1))
        vectors += [compared.sum(0)] if plain else [compared.mean(0), compared.max(0)]
    return feed_forward(under(p, "h"), np.concatenate(vectors)), to_first
