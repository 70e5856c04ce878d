"""Attention: where a query looks in a memory, and what it sees there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from recurra.attention.looks.look import Look, Looked
from recurra.attention.masking import masked_softmax
from recurra.attention.products import averaged
from recurra.attention.terms.term import Term
from recurra.attention.terms.window import Window
from recurra.cells.weights import check_size
from recurra.errors import ConfigError, DataError
from recurra.named import built

Past: TypeAlias = tuple[Tensor, ...]
"""What the terms of an attention keep from step to step, a tensor (N, n) for each; () without terms. At last, where a
look counts, the number of the next step, (N, 1)."""

TermSpec: TypeAlias = str | Mapping[str, object]
LookSpec: TypeAlias = str | Mapping[str, object]


class Memory(NamedTuple):
    """The memory that attention reads: B sources of S places each."""

    keys: Tensor  # (B, S, K) or (B, heads, S, K): what a query is compared with
    values: Tensor  # (B, S, D) or (B, heads, S, D / heads): what is averaged; 0 where the mask is False
    mask: Tensor  # (B, S): False where there is nothing to look at
    columns: int | None = None  # places of a grid stand row after row, so many a row; None: they are one row


class Attended(NamedTuple):
    """The result of attention: context vectors and weights."""

    context: Tensor  # (N, D) for one step, (B, T, D) for all
    weights: Tensor  # (N, S) or (B, T, S): in [0, 1], sum 1 but for looks, exactly 0 where the mask is False
    past: Past  # after the last step
    chance: Tensor | None = None  # (N, 2) or (B, T, 2): what a look has left to chance, as `Looked` has it


class Attention(nn.Module, ABC):
    """e_j = score(q, k_j) + terms;  α = softmax(e) over the real places;  context = Σ_j α_j v_j.

    A `look` makes weights of scores in another way. With `gate`, the context is σ(w·q + b) Σ_j α_j v_j: how much a
    query needs to see (Xu et al. 2015).

    A subclass implements its score and, if needed, its keys; this class handles masking, normalisation, averaging and
    terms.
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
        look: LookSpec | None = None,
        gate: bool = False,
        heads: int = 1,
    ) -> None:
        super().__init__()
        self.query_size = check_size(query_size, "query_size")
        self.memory_size = check_size(memory_size, "memory_size")
        self.to_values = None if values is None else nn.Linear(memory_size, check_size(values, "values"), bias=False)
        self.heads = check_size(heads, "heads")
        if self.context_size % self.heads:
            raise ConfigError(
                f"heads = {heads} must divide the size of the values evenly, but "
                f"{f'the memory has {memory_size}' if values is None else f'values = {values}'}: set values = "
                f"{max(1, self.context_size // heads) * heads} or another multiple of {heads}."
            )
        self.terms = nn.ModuleList(built(Term, spec) for spec in terms)
        self.look: Look | None = None if look is None else built(Look, look, query_size)
        self.gate: nn.Linear | None = nn.Linear(query_size, 1) if gate else None
        self.location: Window | None = None  # of a score that also sees where one has looked

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

    def score_seeing(self, query: Tensor, keys: Tensor, seen: Tensor) -> Tensor:
        """What `score` says, of an attention with a `location`: its features (B, Q, S, filters) are seen too."""
        raise NotImplementedError

    def remember(self, values: Tensor, mask: Tensor, columns: int | None = None) -> Memory:
        """A memory to look at: its places (B, S, memory_size), which are real, (B, S), and how many make a row."""
        if values.dim() != 3 or values.shape[2] != self.memory_size or values.shape[:2] != mask.shape:
            raise DataError(
                f"this attention needs values of shape (B, S, {self.memory_size}) and a mask of shape (B, S), but "
                f"got {tuple(values.shape)} and {tuple(mask.shape)}."
            )
        if columns is not None and (columns < 1 or values.shape[1] % columns):
            raise DataError(f"{values.shape[1]} places cannot be arranged in a grid with {columns} columns.")
        values = values.masked_fill(~mask.unsqueeze(2), 0.0)
        keys = self.keys(values)
        values = values if self.to_values is None else self.to_values(values)
        return Memory(keys, values if self.heads == 1 else self.split(values).contiguous(), mask, columns)

    def split(self, features: Tensor) -> Tensor:
        """(B, heads, S, F / heads) from (B, S, F): each head has a share of its own."""
        return features.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def start(self, memory: Memory, rows: int | None = None) -> Past:
        """What the terms know before the first of a row's queries."""
        looking_back = [*([] if self.location is None else [self.location]), *self.terms]
        past = tuple(part.start(memory.mask, rows) for part in looking_back)
        if not self._counts:
            return past
        return (*past, memory.values.new_zeros(len(memory.mask) if rows is None else rows, 1))

    def step(self, query: Tensor, memory: Memory, past: Past = ()) -> Attended:
        """One query of each row: (N, query_size). N is B, or k times B for k rows of each source, one after the other.

        The memory is never copied: the rows of a source are its queries, side by side.
        """
        sources = len(memory.mask)
        self._check(query, 2, len(query) % sources == 0 if sources else len(query) == 0, memory)
        each = len(query) // sources if sources else 1
        known = tuple(part.view(sources, each, part.shape[1]) for part in past)
        queries = query.view(sources, each, self.query_size)
        weights, chance = self._looked(self._scores(queries, memory, known), queries, memory, known)
        context = self._context(weights, memory.values, queries).flatten(0, 1)
        weights = mean_of_heads(weights).flatten(0, 1)
        chance = None if chance is None else chance.flatten(0, 1)
        return Attended(context, weights, self._moved(past, weights, memory.columns), chance)

    def forward(self, queries: Tensor, memory: Memory, past: Past | None = None) -> Attended:
        """All queries of each row, (B, T, query_size). Only terms, which look back, take one step after the other."""
        self._check(queries, 3, len(queries) == len(memory.mask), memory)
        past = self.start(memory) if past is None else past
        if len(past) > self._counts and queries.shape[1]:
            (weights, chance), past = self._looked_by_step(queries, memory, past)
        else:
            known = tuple(part.unsqueeze(1)[:, :0] for part in past)
            if self._counts:  # which needs no turn after turn
                steps = past[-1] + torch.arange(queries.shape[1], device=queries.device)
                known, past = (*known[:-1], steps.unsqueeze(2)), (*past[:-1], past[-1] + queries.shape[1])
            weights, chance = self._looked(self._scores(queries, memory, known), queries, memory, known)
        return Attended(self._context(weights, memory.values, queries), mean_of_heads(weights), past, chance)

    @property
    def _counts(self) -> bool:
        """Whether the last of the past is the number of a step."""
        return self.look is not None and self.look.counts

    def _scores(self, queries: Tensor, memory: Memory, past: Past) -> Tensor:
        """What `score` says, which may be a user's own: of the shape that all else needs."""
        if self.location is None:
            scores = self.score(queries, memory.keys)
        else:
            scores = self.score_seeing(queries, memory.keys, self.location(past[0], memory.columns))
        rows, places = memory.mask.shape
        wanted = (rows, *([self.heads] if self.heads > 1 else []), queries.shape[1], places)
        if scores.shape != wanted:
            raise DataError(
                f"{type(self).__name__}.score returned scores of shape {tuple(scores.shape)} but they must have "
                f"shape {wanted}: one for each source, {'head, ' if self.heads > 1 else ''}query and place. It was "
                f"given queries of shape {tuple(queries.shape)} and keys of shape {tuple(memory.keys.shape)}."
            )
        return scores

    def _context(self, weights: Tensor, values: Tensor, queries: Tensor) -> Tensor:
        """(B, Q, D): the values under their weights; what the heads see lies side by side."""
        seen = averaged(weights, values)
        seen = seen if self.heads == 1 else seen.transpose(1, 2).flatten(2)
        return seen if self.gate is None else self.gate(queries).sigmoid() * seen

    def _looked(self, scores: Tensor, queries: Tensor, memory: Memory, past: Past) -> Looked:
        """softmax(scores + terms), or what a look makes of them; Q rows for each source, whose pasts are (B, Q, n)."""
        for term, known in self._with(past):
            scores = added(scores, term.score(known, memory.mask, memory.columns))
        if self.look is None:
            return Looked(masked_softmax(scores, over(scores, memory.mask)))
        steps = past[-1].squeeze(2) if self._counts else None
        found: Looked = self.look(scores, queries, memory.mask, steps, memory.columns is not None)
        return found

    def _looked_by_step(self, queries: Tensor, memory: Memory, past: Past) -> tuple[Looked, Past]:
        """Where queries (B, T, query_size) look, each after those before it."""
        # Only a score that sees where one has looked has to wait for its turn.
        ready = None if self.location is not None else self._scores(queries, memory, past).split(1, dim=-2)
        found = []
        for t, query in enumerate(queries.split(1, dim=1)):
            known = tuple(part.unsqueeze(1) for part in past)
            scores = self._scores(query, memory, known) if ready is None else ready[t]
            found.append(self._looked(scores, query, memory, known))
            past = self._moved(past, mean_of_heads(found[-1].weights).squeeze(1), memory.columns)
        chances = [each.chance for each in found if each.chance is not None]
        weights = torch.cat([each.weights for each in found], dim=-2)
        return Looked(weights, torch.cat(chances, dim=1) if chances else None), past

    def _moved(self, past: Past, weights: Tensor, columns: int | None) -> Past:
        terms = tuple(term.moved(known, weights, columns) for term, known in self._with(past))
        seen = () if self.location is None else (self.location.moved(past[0], weights),)
        return (*seen, *terms, *((past[-1] + 1,) if self._counts else ()))

    def _with(self, past: Past) -> Iterator[tuple[Term, Tensor]]:
        """The terms, each with what it knows."""
        first, last = int(self.location is not None), len(past) - self._counts
        return zip(self.terms, past[first:last], strict=True)  # type: ignore[arg-type]  # a ModuleList

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
