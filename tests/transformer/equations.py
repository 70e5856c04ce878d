"""What the docstrings of transformer/ say, in numpy, one row, one step and one place at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import nn

Array = NDArray[np.float64]
Weights = dict[str, Array]


def weights_of(module: nn.Module) -> Weights:
    return {name: value.detach().double().numpy() for name, value in module.state_dict().items()}


def below(w: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): value for name, value in w.items() if name.startswith(prefix)}


def norm(w: Weights, name: str, x: Array) -> Array:
    centred = x - x.mean()
    return centred / np.sqrt((centred**2).mean() + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def turned(x: Array, position: int) -> Array:
    """Each pair as a complex number, times e^{iθ}."""
    half = len(x) // 2
    angles = position * 10000.0 ** (-2.0 * np.arange(half) / len(x))
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag])


def vector_of(position: int, size: int) -> Array:
    """[cos; sin] of the position times ω_j = 10000^(−2j/size)."""
    angles = position * 10000.0 ** (-2.0 * np.arange(size // 2) / size)
    return np.concatenate([np.cos(angles), np.sin(angles)])


def looked(scores: list[float], values: list[Array]) -> tuple[Array, Array]:
    weights = np.exp(np.array(scores) - max(scores))
    weights /= weights.sum()
    return sum((a * v for a, v in zip(weights, values, strict=True)), np.zeros_like(values[0])), weights


def self_attention(w: Weights, xs: Array, heads: int, *, causal: bool, context: int | None) -> Array:
    """(T, width) of one row."""
    of_query, of_key, of_value = (np.split(each, heads) for each in np.split(w["from_input.weight"], 3))
    found = []
    for i, x in enumerate(xs):
        first = 0 if context is None else max(0, i - context)
        places = range(first, i + 1) if causal else range(len(xs))
        shares = []
        for u, m, v in zip(of_query, of_key, of_value, strict=True):
            q = turned(u @ x, i)
            scores = [float(q @ turned(m @ xs[j], j)) / math.sqrt(len(q)) for j in places]
            shares.append(looked(scores, [v @ xs[j] for j in places])[0])
        found.append(w["output.weight"] @ np.concatenate(shares))
    return np.stack(found)


def cross_attention(w: Weights, x: Array, memory: Array, heads: int) -> tuple[Array, Array]:
    u, m, v = (np.split(w[f"attention.{name}.weight"], heads) for name in ("from_query", "from_memory", "to_values"))
    if not len(memory):
        return np.zeros(len(x)), np.zeros(0)
    shares, weights = [], []
    for i in range(heads):
        scores = [float((u[i] @ x) @ (m[i] @ k)) / math.sqrt(len(u[i])) for k in memory]
        seen, alpha = looked(scores, [v[i] @ k for k in memory])
        shares.append(seen)
        weights.append(alpha)
    return w["output.weight"] @ np.concatenate(shares), np.mean(weights, axis=0)


def gelu(x: Array) -> Array:
    return np.array([each * (1 + math.erf(each / math.sqrt(2))) / 2 for each in x])


def stack(
    w: Weights,
    xs: Array,
    *,
    layers: int,
    heads: int,
    causal: bool = False,
    context: int | None = None,
    absolute: bool = False,
    memory: Array | None = None,
) -> tuple[Array, Array | None]:
    """(T, width) of one row (T, input_size), and where the last layer looks in the memory, (T, S)."""
    if "from_input.weight" in w:
        xs = xs @ w["from_input.weight"].T + w["from_input.bias"]
    if absolute:
        xs = np.stack([x + vector_of(i, len(x)) for i, x in enumerate(xs)])
    weights = None
    for number in range(layers):
        own = below(w, f"layers.{number}.")
        normed = np.stack([norm(own, "attention_norm", x) for x in xs])
        xs = xs + self_attention(below(own, "attention."), normed, heads, causal=causal, context=context)
        if memory is not None:
            seen = [
                cross_attention(below(own, "memory_attention."), norm(own, "memory_norm", x), memory, heads) for x in xs
            ]
            xs, weights = xs + np.stack([each for each, _ in seen]), np.stack([each for _, each in seen])
        inner = [gelu(own["inner.weight"] @ norm(own, "norm", x) + own["inner.bias"]) for x in xs]
        xs = np.stack([x + own["outer.weight"] @ each + own["outer.bias"] for x, each in zip(xs, inner, strict=True)])
    return np.stack([norm(w, "norm", x) for x in xs]), weights
