"""The oracle: the distribution of each output written out in numpy, one feature vector at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from recurra.outputs import AdaptiveSoftmax, MixtureOfSoftmaxes, Output, Softmax

Array = NDArray[np.float64]


def numbers(tensor: Tensor) -> Array:
    return tensor.detach().numpy().astype(np.float64)


def softmax(o: Array) -> Array:
    e = np.exp(o - o.max())
    return np.asarray(e / e.sum())


def probabilities(output: Output, features: Tensor) -> Array:
    """(N, V)"""
    weights = {name: numbers(parameter) for name, parameter in output.state_dict().items()}
    rows = numbers(features)
    if isinstance(output, Softmax):
        return np.array([softmax(weights["readout.weight"] @ h + weights["readout.bias"]) for h in rows])
    if isinstance(output, MixtureOfSoftmaxes):
        return np.array([mixed(weights, h) for h in rows])
    assert isinstance(output, AdaptiveSoftmax)
    return np.array([clustered(weights, h, output.edges) for h in rows])


def mixed(weights: dict[str, Array], h: Array) -> Array:
    prior = softmax(weights["prior.weight"] @ h + weights["prior.bias"])
    latent = np.tanh(weights["latent.weight"] @ h + weights["latent.bias"]).reshape(len(prior), -1)
    return np.asarray(
        sum(
            p * softmax(weights["readout.weight"] @ z + weights["readout.bias"])
            for p, z in zip(prior, latent, strict=True)
        )
    )


def clustered(weights: dict[str, Array], h: Array, edges: tuple[int, ...]) -> Array:
    sizes = [1] * edges[0] + [last - start for start, last in pairwise(edges)]
    first = softmax(weights["readout.weight"] @ h + weights["readout.bias"] + np.log(sizes))
    p = np.zeros(edges[-1])
    for w in range(edges[-1]):
        if w < edges[0]:
            p[w] = first[w]
            continue
        i = max(number for number, edge in enumerate(edges) if edge <= w)
        narrow = weights[f"shrinks.{i}.weight"] @ h
        within = softmax(weights[f"tails.{i}.weight"] @ narrow + weights[f"tails.{i}.bias"])
        p[w] = first[edges[0] + i] * within[w - edges[i]]
    return p
