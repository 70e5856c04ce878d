"""Attention: where a query looks in a memory, and what it sees there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from recurra.attention.masking import masked_softmax
from recurra.attention.products import averaged
from recurra.attention.terms.term import Term
from recurra.cells.weights import check_size
from recurra.errors import ConfigError, DataError
from recurra.named import built

Past: TypeAlias = tuple[Tensor, ...]
"""What the terms of an attention keep from step to step, a tensor (N, n) for each; () without terms."""

TermSpec: TypeAlias = str | Mapping[str, object]


class Memory(NamedTuple):
    """What is looked at: B sources of S places each."""

    keys: Tensor  # (B, S, K) or (B, heads, S, K): what a query is compared with
    values: Tensor  # (B, S, D) or (B, heads, S, D / heads): what is averaged; 0 where the mask is False
    mask: Tensor  # (B, S): False where there is nothing to look at


class Attended(NamedTuple):
    """What queries have seen, and where."""

    context: Tensor  # (N, D) for one step, (B, T, D) for all
    weights: Tensor  # (N, S) or (B, T, S): in [0, 1], sum 1, exactly 0 where the mask is False
    past: Past  # after the last step


class Attention(nn.Module, ABC):
    """e_j = score(q, k_j) + terms;  α = softmax(e) over the real places;  context = Σ_j α_j v_j.

    A variant writes its score and, where it needs them, its keys; masking, normalising, averaging and terms are here.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
        heads: int = 1,
    ) -> None:
        super().__init__()
        self.query_size = check_size(query_size, "query_size")
        self.memory_size = check_size(memory_size, "memory_size")
        self.to_values = None if values is None else nn.Linear(memory_size, check_size(values, "values"), bias=False)
        self.heads = check_size(heads, "heads")
        if self.context_size % self.heads:
            raise ConfigError(
                f"heads = {heads} take an equal share each of the values' features, but "
                f"{f'the memory has {memory_size}' if values is None else f'values = {values}'}: set values = "
                f"{max(1, self.context_size // heads) * heads} or another multiple of {heads}."
            )
        self.terms = nn.ModuleList(built(Term, spec) for spec in terms)

    @property
    def context_size(self) -> int:
        """D, the size of a context."""
        return self.memory_size if self.to_values is None else self.to_values.out_features

    @abstractmethod
    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        """(B, Q, S), or (B, heads, Q, S): how well each query (B, Q, query_size) fits each of the keys."""

    def keys(self, values: Tensor) -> Tensor:
        """(B, S, K), or (B, heads, S, K): what a query is compared with, once for a memory (B, S, memory_size)."""
        return values

    def remember(self, values: Tensor, mask: Tensor) -> Memory:
        """A memory to look at: its places (B, S, memory_size), and which are real, (B, S)."""
        if values.dim() != 3 or values.shape[2] != self.memory_size or values.shape[:2] != mask.shape:
            raise DataError(
                f"this attention remembers places of shape (B, S, {self.memory_size}) under a mask (B, S), but got "
                f"{tuple(values.shape)} and {tuple(mask.shape)}."
            )
        values = values.masked_fill(~mask.unsqueeze(2), 0.0)
        keys = self.keys(values)
        values = values if self.to_values is None else self.to_values(values)
        return Memory(keys, values if self.heads == 1 else self.split(values).contiguous(), mask)

    def split(self, features: Tensor) -> Tensor:
        """(B, heads, S, F / heads) from (B, S, F): each head has a share of its own."""
        return features.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def start(self, memory: Memory, rows: int | None = None) -> Past:
        """What the terms know before the first of a row's queries."""
        return tuple(term.start(memory.mask, rows) for term in self.terms)  # type: ignore[operator]

    def step(self, query: Tensor, memory: Memory, past: Past = ()) -> Attended:
        """One query of each row: (N, query_size). N is B, or k times B for k rows of each source, one after the other.

        The memory is never copied: the rows of a source are its queries, side by side.
        """
        sources = len(memory.mask)
        self._check(query, 2, len(query) % sources == 0 if sources else len(query) == 0, memory)
        each = len(query) // sources if sources else 1
        scores = self._scores(query.view(sources, each, self.query_size), memory)
        for term, known in self._with(past):
            scores = added(scores, term.score(known.view(sources, each, known.shape[1]), memory.mask))
        weights = masked_softmax(scores, over(scores, memory.mask))
        context = self._context(weights, memory.values).flatten(0, 1)
        weights = mean_of_heads(weights).flatten(0, 1)
        return Attended(context, weights, self._moved(past, weights))

    def forward(self, queries: Tensor, memory: Memory, past: Past | None = None) -> Attended:
        """All queries of each row, (B, T, query_size). Only terms, which look back, take one step after the other."""
        self._check(queries, 3, len(queries) == len(memory.mask), memory)
        past = self.start(memory) if past is None else past
        scores = self._scores(queries, memory)
        if self.terms and queries.shape[1]:
            weights, past = self._weights_by_step(scores, memory.mask, past)
        else:
            weights = masked_softmax(scores, over(scores, memory.mask))
        return Attended(self._context(weights, memory.values), mean_of_heads(weights), past)

    def _scores(self, queries: Tensor, memory: Memory) -> Tensor:
        """What `score` says, which may be a user's own: of the shape that all else needs."""
        scores = self.score(queries, memory.keys)
        rows, places = memory.mask.shape
        wanted = (rows, *([self.heads] if self.heads > 1 else []), queries.shape[1], places)
        if scores.shape != wanted:
            raise DataError(
                f"{type(self).__name__}.score gave scores of shape {tuple(scores.shape)} where they must be {wanted}: "
                f"one for each source, {'head, ' if self.heads > 1 else ''}query and place. It was given queries of "
                f"shape {tuple(queries.shape)} and keys of shape {tuple(memory.keys.shape)}."
            )
        return scores

    def _context(self, weights: Tensor, values: Tensor) -> Tensor:
        """(B, Q, D): the values under their weights; what the heads see lies side by side."""
        seen = averaged(weights, values)
        return seen if self.heads == 1 else seen.transpose(1, 2).flatten(2)

    def _weights_by_step(self, scores: Tensor, mask: Tensor, past: Past) -> tuple[Tensor, Past]:
        """The weights of scores (B, [heads,] T, S) and the terms of each step."""
        found = []
        for score in scores.split(1, dim=-2):
            for term, known in self._with(past):
                score = added(score, term.score(known.unsqueeze(1), mask))
            found.append(masked_softmax(score, over(score, mask)))
            past = self._moved(past, mean_of_heads(found[-1]).squeeze(1))
        return torch.cat(found, dim=-2), past

    def _moved(self, past: Past, weights: Tensor) -> Past:
        return tuple(term.moved(known, weights) for term, known in self._with(past))

    def _with(self, past: Past) -> Iterator[tuple[Term, Tensor]]:
        """The terms, each with what it knows."""
        return zip(self.terms, past, strict=True)  # type: ignore[arg-type]  # a ModuleList of terms

    def _check(self, queries: Tensor, dims: int, rows_fit: bool, memory: Memory) -> None:
        if queries.dim() != dims or queries.shape[-1] != self.query_size or not rows_fit:
            wanted = "N rows, a multiple of the B sources" if dims == 2 else "(B, T), a row for each of the B sources"
            raise DataError(
                f"this attention takes queries of {self.query_size} features in {wanted}, but got "
                f"{tuple(queries.shape)} for {len(memory.mask)} sources."
            )

    def extra_repr(self) -> str:
        return f"query {self.query_size}, memory {self.memory_size}"


def added(scores: Tensor, term: Tensor) -> Tensor:
    """Scores (B, [heads,] Q, S) and what a term adds, (B, Q, S)."""
    return scores + (term.unsqueeze(1) if scores.dim() == 4 else term)


def over(scores: Tensor, mask: Tensor) -> Tensor:
    """A mask (B, S) in a shape that broadcasts to scores (B, [heads,] Q, S)."""
    return mask[:, None, None] if scores.dim() == 4 else mask.unsqueeze(1)


def mean_of_heads(weights: Tensor) -> Tensor:
    """(B, Q, S) from weights (B, [heads,] Q, S)."""
    return weights.mean(1) if weights.dim() == 4 else weights
