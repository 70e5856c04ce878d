"""Small random networks: what comes next depends on all that was, on a source, and on weights over its places."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.search.search import Hypothesis

SIZE = 3


class State(NamedTuple):
    h: Tensor  # (N, SIZE)
    weights: Tensor  # (N, S): what the last step looked at


class Source(NamedTuple):
    vectors: Tensor  # (B, S, SIZE)
    places: Tensor  # (B, S): true where there is one


class Tiny(NamedTuple):
    """h' = tanh(A h + E[y] + Σ_j α_j v_j), α = softmax(v h), p = softmax(W h')."""

    recurrent: Tensor
    embedding: Tensor
    output: Tensor

    def step(self, tokens: Tensor, moving: State, fixed: Source) -> tuple[Tensor, State]:
        each = len(tokens) // len(fixed.places)
        assert len(tokens) == len(moving.h) == each * len(fixed.places)
        vectors, places = (part.repeat_interleave(each, 0) for part in fixed)
        weights = (vectors @ moving.h.unsqueeze(2)).squeeze(2).masked_fill(~places, -torch.inf).softmax(1)
        context = (weights.unsqueeze(1) @ vectors).squeeze(1)
        h = (moving.h @ self.recurrent + self.embedding[tokens] + context).tanh()
        return (h @ self.output).log_softmax(1), State(h, weights)


def watch(moving: State) -> Tensor:
    return moving.weights


def tiny(seed: int, vocabulary: int, dtype: torch.dtype = torch.float64) -> Tiny:
    made = torch.Generator().manual_seed(seed)
    shapes = ((SIZE, SIZE), (vocabulary, SIZE), (SIZE, vocabulary))
    return Tiny(*(2 * torch.randn(shape, generator=made, dtype=torch.float64).to(dtype) for shape in shapes))


def begun(seed: int, sentences: int, places: int = 4, dtype: torch.dtype = torch.float64) -> tuple[State, Source]:
    """States and sources of some sentences; the first of `places` are real, one more in each, and at least one."""
    made = torch.Generator().manual_seed(seed)
    vectors = torch.randn(sentences, places, SIZE, generator=made, dtype=torch.float64).to(dtype)
    h = torch.randn(sentences, SIZE, generator=made, dtype=torch.float64).to(dtype)
    count = torch.arange(sentences) % places + 1
    real = torch.arange(places) < count.unsqueeze(1)
    return State(h, torch.zeros(sentences, places, dtype=dtype)), Source(vectors, real)


def row(moving: State, fixed: Source, number: int) -> tuple[State, Source]:
    one = slice(number, number + 1)
    return State(*(part[one] for part in moving)), Source(*(part[one] for part in fixed))


def walked(model: Tiny, first: int, moving: State, fixed: Source, tokens: list[int]) -> tuple[float, Tensor]:
    """log P of tokens and the weights of every step, one step after the other, for a single sentence."""
    total, seen, last = 0.0, [], first
    for token in tokens:
        log_p, moving = model.step(torch.tensor([last]), moving, fixed)
        total += float(log_p[0, token])
        seen.append(moving.weights[0])
        last = token
    return total, torch.stack(seen)


def claims(found: list[Hypothesis]) -> list[tuple[list[int], bool]]:
    """What a search has found, without numbers."""
    return [(each.tokens, each.ended) for each in found]
