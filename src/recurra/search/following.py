"""Greedy search and sampling on a device: a token for each row at each step, read when all are over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np
import torch
from torch import Tensor

from recurra.padding import longest
from recurra.search.bars import Bars, Bounds, Prefixes, bounds_of, prefixes_of
from recurra.search.continuing import most_probable, most_probable_noted
from recurra.search.front import Numbers
from recurra.search.graphs import Graphs
from recurra.search.rules import NONE, Flags, Ids, Law, Rules
from recurra.search.running import Notes, begun
from recurra.search.sampling import Filter, Sampler, drawn
from recurra.search.score import divisors, uncovered
from recurra.search.search import Fixed, Hypothesis, Moving, Step, Watch, lengths_of, no_token, selected
from recurra.search.walking import alive_of, columns_of, first_rows, on, select_first, stretch_of, walked


class Followed(NamedTuple):
    """Where N rows stand after some steps; L is the room for all steps."""

    step: Tensor  # (1,): how many were done
    tokens: Tensor  # (N,): the last ones
    moving: Any
    alive: Tensor  # (N,)
    chosen: Tensor | None  # (N, L): the tokens so far, and anything after a row's end; None before the first steps
    gained: Tensor | None  # (N, L): log p of each
    watched: Tensor | None  # (N, L, S); None also where nothing is watched


class Ways(NamedTuple):
    """What stays the same for N rows."""

    fixed: Any
    limits: Tensor  # (N,): the most tokens of each
    prefixes: Prefixes | None
    chances: Tensor | None  # (N, L): random numbers, one for each token; None: the most probable is taken
    bounds: Bounds | None


class Following(Generic[Moving, Fixed]):
    """Rows that are followed token by token. A row that is over goes on until all are looked at; nobody reads it."""

    def __init__(
        self,
        stepping: Callable[[], Step[Moving, Fixed]],
        law: Law,
        *,
        keep: Filter | None,
        watch: Watch[Moving] | None,
        marks: Hashable,
    ) -> None:
        self.stepping, self.law, self.keep, self.watch = stepping, law, keep, watch
        self.kept = Bars(law)
        self.length = int(law.lengths.max())
        self.least = law.min_length
        self.stretch_size, self.columns = stretch_of(self.length), columns_of(self.length)
        self.key: Hashable = ("followed", marks, self.stretch_size, self.columns, self.kept.key, keep, watch is None)
        rows = len(law.lengths)
        self.tokens = np.zeros((rows, self.length), np.int64)
        self.gained = np.zeros((rows, self.length))
        self.watched: list[tuple[Ids, Tensor]] = []

    def start(self, tokens: Tensor, moving: Moving, numbers: Ids) -> Followed:
        """Before the first step."""
        if len(numbers) > len(tokens):
            tokens, moving = selected((tokens, moving), select_first(numbers, tokens.device))
        alive = alive_of(numbers, tokens.device)
        return Followed(torch.zeros(1, dtype=torch.long, device=tokens.device), tokens, moving, alive, None, None, None)

    def given(self, fixed: Fixed, numbers: Ids, device: torch.device, sampler: Sampler | None) -> Ways:
        """What the steps are given."""
        rows = np.maximum(numbers, 0)
        chances = None if sampler is None else sampler.chances(range(len(self.law.lengths)), self.columns)[rows]
        whole = len(numbers) == len(self.law.lengths)
        return Ways(
            fixed if whole else selected(fixed, select_first(numbers, device)),
            on(device, torch.from_numpy(self.law.lengths[rows])),
            *on(device, (prefixes_of(self.law, rows.tolist()), chances, bounds_of(self.law, rows))),
        )

    def stretch(self, state: Followed, given: Ways) -> Followed:
        bars, device = self.kept, state.tokens.device
        run = begun(self.stepping(), state.tokens, state.moving, given.fixed)
        numbers = state.step + torch.arange(self.stretch_size, device=device)
        chances = None if given.chances is None else given.chances.index_select(1, numbers)
        closed, room = list[Tensor | None](), (len(state.tokens), self.columns)
        chosen = state.tokens.new_zeros(room) if state.chosen is None else state.chosen
        gained = torch.zeros_like(chosen, dtype=longest(device)) if state.gained is None else state.gained
        tokens, ids, values, seen = state.tokens, list[Tensor](), list[Tensor](), list[Tensor]()
        for at in range(self.stretch_size):
            scored = run.scores()
            if not at:
                bars.make(scored.values.shape[1], device)
                closed = bars.closed(numbers)
            past = chosen if bars.needs_past else None
            scored, shut = bars.allowed(scored, closed[at], numbers[at : at + 1], past, given.prefixes, given.bounds)
            noted, has_gone_on = None, False
            if self.keep is None or chances is None:
                notes = Notes(state.step, at, chosen, gained, state.alive, given.limits, bars.is_end)
                has_gone_on = self.watch is None and (noted := run.take(scored, shut, notes)) is not None
                noted = noted if has_gone_on else most_probable_noted(scored, shut, notes)
                if noted is None:
                    value, tokens = most_probable(scored, shut)
            else:
                log_p = scored.log_p() if shut is None else scored.log_p().masked_fill(shut, -torch.inf)
                tokens = drawn(log_p, self.keep, chances[:, at : at + 1])
                value = log_p.gather(1, tokens.unsqueeze(1)).squeeze(1)
            if noted is not None:
                tokens = noted
            else:
                ids.append(tokens)
                values.append(value)
            if self.watch is not None:
                seen.append(self.watch(run.moving()))
            if not has_gone_on:
                run.go_on(tokens)
            if bars.needs_past and noted is None:
                chosen.index_copy_(1, numbers[at : at + 1], tokens.unsqueeze(1))
        watched = state.watched
        if seen:
            if watched is None:
                watched = seen[0].new_zeros(len(tokens), self.columns, seen[0].shape[1])
            watched.index_copy_(1, numbers, torch.stack(seen, dim=1))
        alive = state.alive
        if ids:
            found, now = torch.stack(ids, dim=1), torch.stack(values, dim=1).to(gained.dtype)
            if not bars.needs_past:
                chosen.index_copy_(1, numbers, found)
            gained.index_copy_(1, numbers, now)
            is_over = bars.is_end[found] | ~now.isfinite() | (numbers + 1 >= given.limits.unsqueeze(1))
            alive = alive & ~is_over.any(1)
        return Followed(state.step + self.stretch_size, tokens, run.moving(), alive, chosen, gained, watched)

    def alive(self, state: Followed) -> Tensor:
        return state.alive

    def selected(self, state: Followed, given: Ways, rows: Tensor) -> tuple[Followed, Ways]:
        return Followed(state.step.clone(), *selected(tuple(state[1:]), rows)), selected(given, rows)

    def take(self, state: Followed, rows: Ids, sentences: Ids, written: int) -> None:
        count = min(written, self.length)
        parts = tuple(None if each is None else each[:, :count] for each in (state.chosen, state.gained, state.watched))
        if len(rows) < len(state.alive):
            parts = selected(parts, torch.from_numpy(rows).to(state.alive.device))
        chosen, gained, watched = parts
        assert chosen is not None
        assert gained is not None
        self.tokens[sentences, :count], self.gained[sentences, :count] = chosen.cpu().numpy(), gained.cpu().numpy()
        if watched is not None:
            self.watched.append((sentences, watched.to("cpu", copy=True)))  # not where the next search writes

    def answers(self, length_penalty: float, coverage_penalty: float, places: Tensor | None) -> list[Hypothesis]:
        """The sequence of each row, when all are over."""
        steps, is_end = np.arange(self.length), np.zeros(self.tokens.shape, np.bool_)
        for end in self.law.ends:
            is_end |= self.tokens == end
        is_over = is_end | ~np.isfinite(self.gained) | (steps + 1 >= self.law.lengths[:, None])
        lengths = is_over.argmax(1) + 1
        every = np.arange(len(lengths))
        self._check(lengths - 1, self.gained[every, lengths - 1])
        is_real = steps < lengths[:, None]
        totals: Numbers = np.where(is_real, self.gained, 0.0).sum(1)
        scores: Numbers = totals / divisors(self.length, length_penalty)[lengths]
        views: list[Tensor | None] = [None] * len(lengths)
        for sentences, watched in self.watched:
            if coverage_penalty:
                real = None if places is None else places[torch.from_numpy(sentences).to(places.device)].cpu()
                mask = torch.from_numpy(~is_real[sentences, : watched.shape[1]]).unsqueeze(2)
                lack = uncovered(watched.masked_fill(mask, 0).sum(1), real)
                scores[sentences] += coverage_penalty * lack.double().numpy()
            for sentence, view in zip(sentences.tolist(), watched.unbind(), strict=True):
                views[sentence] = view if len(view) == lengths[sentence] else view[: lengths[sentence]]
        return [
            Hypothesis(tokens[:length], total, ended, score, view)
            for tokens, length, total, ended, score, view in zip(
                self.tokens.tolist(),
                lengths.tolist(),
                totals.tolist(),
                is_end[every, lengths - 1].tolist(),
                scores.tolist(),
                views,
                strict=True,
            )
        ]

    def _check(self, last: Ids, values: Numbers) -> None:
        """The error of the first step at which a row could not go on."""
        failed: Flags = ~np.isfinite(values)
        if not failed.any():
            return
        step = int(last[failed].min())
        dead = np.nonzero(failed & (last == step) & (values == -np.inf))[0]
        raise no_token() if self.law.is_empty or not len(dead) else self.law.dead_end(int(dead[0]), step)


def follow(
    stepping: Callable[[], Step[Moving, Fixed]],
    tokens: Tensor,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int | Sequence[int],
    ends: Collection[int] = (),
    keep: Filter | None = None,
    seed: int = 1,
    numbers: Sequence[int] | None = None,
    first: int = 0,
    rules: Rules = NONE,
    length_penalty: float = 0.0,
    watch: Watch[Moving] | None = None,
    coverage_penalty: float = 0.0,
    places: Tensor | None = None,
    graphs: Graphs | None = None,
    marks: Hashable = None,
) -> list[Hypothesis]:
    """What `greedy` finds, or with `keep` what `sample` finds, computed where the tensors are.

    `stepping` makes the step anew for every few of its calls, so that nothing that it keeps is older. With `graphs`,
    batches of shapes that were seen before are replayed; `marks` says all that the step depends on besides tensors.
    Rules may have no forced tokens.
    """
    lengths = lengths_of(length, len(tokens))
    if not lengths:
        return []
    sampler = None
    if keep is not None:
        rules = rules._replace(banned=(*rules.banned, *keep.banned))
        sampler = Sampler(keep._replace(banned=()), seed=seed, first=first, numbers=numbers)
    law = Law(rules, lengths, ends)
    search = Following(stepping, law, keep=None if sampler is None else sampler.keep, watch=watch, marks=marks)
    sentences = first_rows(len(lengths))
    with torch.no_grad():
        given = search.given(fixed, sentences, tokens.device, sampler)
        walked(search, search.start(tokens, moving, sentences), given, sentences, graphs)
    return search.answers(length_penalty, coverage_penalty, places)
