"""Beam search on a device: what each step keeps is written down there, and read when all sentences are over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Generic, NamedTuple

import numpy as np
import torch
from torch import Tensor

from recurra.padding import longest
from recurra.search.bars import Bars, Bounds, Prefixes, bounds_of, prefixes_of
from recurra.search.continuing import best_answers, continued
from recurra.search.front import Numbers
from recurra.search.graphs import Graphs
from recurra.search.largest import in_order
from recurra.search.rules import NONE, Flags, Ids, Law, Rules
from recurra.search.running import begun
from recurra.search.score import check_penalties, divisors, uncovered
from recurra.search.search import Fixed, Hypothesis, Moving, Step, Watch, check_count, lengths_of, no_token, selected
from recurra.search.walking import alive_of, columns_of, first_rows, on, select_first, stretch_of, walked


class Written(NamedTuple):
    """What L steps have kept of each of B sentences, w hypotheses each, best first."""

    totals: Tensor  # (L, B, w): log P, -∞ where there is none
    codes: Tensor  # (L, B, w): token · w + place of the hypothesis that it continues
    lacks: Tensor | None  # (L, B, w): what coverage takes from the score; None: nothing
    watched: Tensor | None  # (L, B w, S): what was looked at from each hypothesis before the step; None: nothing


class Beamed(NamedTuple):
    """Where a beam stands after some steps."""

    step: Tensor  # (1,): how many were done
    tokens: Tensor  # (B w,): the last ones
    moving: Any
    totals: Tensor  # (B, w): log P of those that live, else -∞
    covered: Tensor | None  # (B w, S): the sum of what was watched; None before the first steps, or without penalty
    past: Tensor | None  # (B w, L): the tokens of each; None: no rule asks for them
    alive: Tensor  # (B,)
    best: Tensor  # (B, best): the scores of the best that have ended, best first; -∞ for those that have not
    written: Written | None  # None before the first steps


class Beams(NamedTuple):
    """What stays the same for B sentences."""

    fixed: Any
    limits: Tensor  # (B,): the most tokens of each
    largest_divisors: Tensor  # (B,): by what log P of a sequence of so many tokens is divided
    prefixes: Prefixes | None  # (B w, …)
    places: Tensor | None  # (B w, S)
    bounds: Bounds | None  # (B w,)


class Found(NamedTuple):
    """The answers of some sentences, best first; n answers in all."""

    sentences: Ids  # (n,)
    lengths: Ids  # (n,)
    tokens: Ids  # (n, longest)
    totals: Numbers  # (n,)
    scores: Numbers  # (n,)
    ended: Flags  # (n,)
    watched: Tensor | None  # (n, longest, S)


class Beaming(Generic[Moving, Fixed]):
    """A beam. Sentences that are over go on until all are looked at, which changes none of their answers."""

    def __init__(
        self,
        stepping: Callable[[], Step[Moving, Fixed]],
        law: Law,
        *,
        width: int,
        best: int,
        length_penalty: float,
        coverage_penalty: float,
        watch: Watch[Moving] | None,
        marks: Hashable,
    ) -> None:
        self.stepping, self.law, self.watch = stepping, law, watch
        self.width, self.best, self.coverage_penalty = width, best, coverage_penalty
        self.length = int(law.lengths.max())
        self.least = 0 if law.no_repeat or law.brackets.pairs else law.min_length
        self.stretch_size, self.columns = stretch_of(self.length), columns_of(self.length)
        self.divisors = divisors(max(self.length, self.columns), length_penalty)
        self.kept = Bars(law, self.divisors[1:])
        sizes = (width, best, self.stretch_size, self.columns)
        self.key: Hashable = ("beam", marks, sizes, self.kept.key, length_penalty, coverage_penalty, watch is None)
        self.found: list[Found] = []
        self.failures: list[tuple[int, bool, int]] = []  # step, whether it is the law's doing, sentence

    def start(self, tokens: Tensor, moving: Moving, numbers: Ids) -> Beamed:
        """Before the first step: one hypothesis for each sentence, and absent ones."""
        first, begun = selected((tokens, moving), select_first(numbers, tokens.device, self.width))
        sentences, device = len(numbers), tokens.device
        totals = torch.full((sentences, self.width), -torch.inf, dtype=longest(device), device=device)
        totals[:, 0] = 0.0
        return Beamed(
            step=torch.zeros(1, dtype=torch.long, device=device),
            tokens=first,
            moving=begun,
            totals=totals,
            covered=None,
            past=first.new_zeros(len(first), self.columns) if self.kept.needs_past else None,
            alive=alive_of(numbers, device),
            best=totals.new_full((sentences, self.best), -torch.inf),
            written=None,
        )

    def given(self, fixed: Fixed, numbers: Ids, places: Tensor | None, device: torch.device) -> Beams:
        """What the steps are given."""
        rows = np.maximum(numbers, 0)
        own = rows.repeat(self.width)
        limits = self.law.lengths[rows]
        is_whole = len(numbers) == len(self.law.lengths)
        return Beams(
            fixed if is_whole else selected(fixed, select_first(numbers, device)),
            on(device, torch.from_numpy(limits)),
            on(device, torch.from_numpy(self.divisors[limits])),
            on(device, prefixes_of(self.law, own.tolist())),
            None if places is None else selected(on(device, places), select_first(numbers, device, self.width)),
            on(device, bounds_of(self.law, own)),
        )

    def stretch(self, state: Beamed, given: Beams) -> Beamed:
        device = state.tokens.device
        run = begun(self.stepping(), state.tokens, state.moving, given.fixed)
        sentences, width = state.totals.shape
        numbers = state.step + torch.arange(self.stretch_size, device=device)
        closed: list[Tensor | None] = []
        _, tokens, _, totals, covered, past, alive, best, written = state
        each: list[tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]] = []
        for at in range(self.stretch_size):
            scored = run.scores()
            if not at:
                self.kept.make(scored.values.shape[1], device)
                closed = self.kept.closed(numbers)
            seen = None if self.watch is None else self.watch(run.moving())
            at_step = numbers[at : at + 1]
            scored, shut = self.kept.allowed(scored, closed[at], at_step, past, given.prefixes, given.bounds)
            kept, chosen, parents, rows, totals = continued(scored, shut, totals, self.kept.is_end)
            lack = None
            if self.coverage_penalty and seen is not None:
                covered = seen if covered is None else covered + seen
                by_row = self.coverage_penalty * uncovered(covered, given.places)
                lack = by_row.view(sentences, width).gather(1, parents).to(totals.dtype)
            each.append((kept, chosen, parents, lack, seen))
            tokens = chosen.flatten()
            run.go_on(tokens, rows)
            covered, past = selected((covered, past), rows)
            if past is not None:
                past = past.index_copy(1, numbers[at : at + 1], tokens.unsqueeze(1))
        now, written = self._written(each, written, numbers)
        scores = self._scores(now, numbers)
        is_new = self.kept.is_end[now.codes // width] & (numbers.unsqueeze(1) < given.limits).unsqueeze(2)
        ended = scores.masked_fill(~is_new, -torch.inf).transpose(0, 1).flatten(1)
        best = torch.cat([best, ended], dim=1).topk(self.best, dim=1).values
        # log P only falls and its divisor only grows, up to that of the length; coverage only takes.
        can_reach = totals.amax(1) / given.largest_divisors
        alive = alive & (can_reach > best[:, -1]) & (numbers[-1] + 1 < given.limits)
        return Beamed(state.step + self.stretch_size, tokens, run.moving(), totals, covered, past, alive, best, written)

    def alive(self, state: Beamed) -> Tensor:
        return state.alive

    def selected(self, state: Beamed, given: Beams, rows: Tensor) -> tuple[Beamed, Beams]:
        own = (rows.unsqueeze(1) * self.width + torch.arange(self.width, device=rows.device)).flatten()
        assert state.written is not None, "sentences are over after some steps"
        totals, codes, lacks, watched = state.written
        written = Written(
            totals.index_select(1, rows),
            codes.index_select(1, rows),
            None if lacks is None else lacks.index_select(1, rows),
            None if watched is None else watched.index_select(1, own),
        )
        tokens, moving, covered, past = selected((state.tokens, state.moving, state.covered, state.past), own)
        kept, alive, best = selected((state.totals, state.alive, state.best), rows)
        fixed, limits, by = selected((given.fixed, given.limits, given.largest_divisors), rows)
        after = Beamed(state.step.clone(), tokens, moving, kept, covered, past, alive, best, written)
        return after, Beams(fixed, limits, by, *selected((given.prefixes, given.places, given.bounds), own))

    def take(self, state: Beamed, rows: Ids, sentences: Ids, written: int) -> None:
        assert state.written is not None, "sentences are over after some steps"
        count, device = min(written, self.length), state.alive.device
        if self._taken_by_kernel(state, rows, sentences, count):
            return
        here = torch.from_numpy(rows).to(device)
        totals, codes, lacks, watched = (None if each is None else each[:count] for each in state.written)
        assert totals is not None
        assert codes is not None
        if len(rows) < len(state.alive):
            totals, codes = totals.index_select(1, here), codes.index_select(1, here)
            lacks = None if lacks is None else lacks.index_select(1, here)
        limits = torch.from_numpy(self.law.lengths[sentences]).to(device)
        numbers = torch.arange(count, device=device).unsqueeze(1)
        scores = self._scores(Written(totals, codes, lacks, None), numbers.squeeze(1))
        is_real = (totals > -torch.inf) & (numbers < limits).unsqueeze(2)
        is_end = is_real & self.kept.is_end[codes // self.width]
        is_cut = is_real & ~is_end & (numbers + 1 == limits).unsqueeze(2)
        # Those that ended first, then those that were cut off; of equals, the one that was reached first.
        few = min(self.best, count * self.width)
        ended, cut = (
            in_order(scores.masked_fill(~which, -torch.inf).transpose(0, 1).flatten(1), few)
            for which in (is_end, is_cut)
        )
        score = torch.cat([ended[0], cut[0]], dim=1).cpu().numpy()
        place = torch.cat([ended[1], cut[1]], dim=1).cpu().numpy()
        host = totals.cpu().numpy()
        self._fail(host, sentences, score)
        is_answer = score > -np.inf
        is_answer &= is_answer.cumsum(1) <= self.best
        at, column = np.nonzero(is_answer)
        last, slot = np.divmod(place[at, column], self.width)
        tokens, parents = traced(codes.cpu().numpy(), at, last, slot, self.width)
        looked = None
        if watched is not None and len(at):
            own = torch.from_numpy(rows[at] * self.width + parents).to(device)  # (longest, n)
            looked = watched[torch.arange(len(own), device=device).unsqueeze(1), own].transpose(0, 1).contiguous().cpu()
        self.found.append(
            Found(
                sentences=sentences[at],
                lengths=last + 1,
                tokens=tokens.T,
                totals=host[last, at, slot],
                scores=score[at, column],
                ended=column < few,
                watched=looked,
            )
        )

    def _taken_by_kernel(self, state: Beamed, rows: Ids, sentences: Ids, count: int) -> bool:
        """Whether a kernel has found the answers."""
        assert state.written is not None, "sentences are over after some steps"
        totals, codes, lacks, watched = (None if each is None else each[:count] for each in state.written)
        assert totals is not None
        assert codes is not None
        here, limits = on(state.alive.device, (torch.from_numpy(rows), torch.from_numpy(self.law.lengths[sentences])))
        found = best_answers((totals, codes, lacks), self.kept.divisors, self.kept.is_end, here, limits, self.best)
        if found is None:
            return False
        ids, numbers = found[0].cpu().numpy(), found[1].cpu().numpy()
        last = ids[:, :, 0]
        if (ids[:, 0, 2] > 0).any() or (last[:, 0] < 0).any():
            self._fail(totals.index_select(1, here).cpu().numpy(), sentences, numbers[:, :, 1])
        at, column = np.nonzero(last >= 0)
        own = ids[at, column]
        lengths = own[:, 0] + 1
        longest = int(lengths.max()) if len(lengths) else 0
        looked = None
        if watched is not None and len(at):
            parents = own[:, 3 + count : 3 + count + longest].T
            place = torch.from_numpy(rows[at] * self.width + parents).to(state.alive.device)  # (longest, n)
            steps = torch.arange(longest, device=place.device).unsqueeze(1)
            looked = watched[steps, place].transpose(0, 1).contiguous().cpu()
        self.found.append(
            Found(
                sentences=sentences[at],
                lengths=lengths,
                tokens=own[:, 3 : 3 + longest],
                totals=numbers[at, column, 0],
                scores=numbers[at, column, 1],
                ended=own[:, 1] > 0,
                watched=looked,
            )
        )
        return True

    def answers(self) -> list[list[Hypothesis]]:
        """The answers of each sentence, best first, when all are over."""
        if self.failures:
            step, is_barred, sentence = min(self.failures)
            raise self.law.dead_end(sentence, step) if is_barred else no_token()
        answers: list[list[Hypothesis]] = [[] for _ in self.law.lengths]
        for found in self.found:
            views = [None] * len(found.lengths) if found.watched is None else found.watched.unbind()
            columns = (each.tolist() for each in found[:6])
            for sentence, length, tokens, total, score, ended, view in zip(*columns, views, strict=True):
                seen = view if view is None or len(view) == length else view[:length]
                answers[sentence].append(Hypothesis(tokens[:length], total, ended, score, seen))
        return answers

    def _scores(self, now: Written, numbers: Tensor) -> Tensor:
        """(c, B, w): of what steps with these numbers have kept."""
        scores = now.totals / self.kept.divisors.index_select(0, numbers)[:, None, None]
        return scores if now.lacks is None else scores + now.lacks

    def _written(
        self,
        each: list[tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]],
        written: Written | None,
        numbers: Tensor,
    ) -> tuple[Written, Written]:
        """What these steps have kept, and what all have."""
        parts = [None if part[0] is None else torch.stack(part) for part in zip(*each, strict=True)]
        totals, chosen, parents, lacks, watched = parts
        assert totals is not None
        assert chosen is not None
        assert parents is not None
        now = Written(totals, chosen * self.width + parents, lacks, watched)
        if written is None:
            room = (None if part is None else part.new_zeros(self.columns, *part.shape[1:]) for part in now)
            written = Written(*room)  # type: ignore[arg-type]  # None where there is none
        for part, into in zip(now, written, strict=True):
            if part is not None and into is not None:
                into.index_copy_(0, numbers, part)
        return now, written

    def _fail(self, totals: Numbers, sentences: Ids, scores: Numbers) -> None:
        """Writes down where a sentence has no number or no answer."""
        is_lost = ~(scores > -np.inf).any(1)
        if not is_lost.any() and not np.isnan(totals.sum()):  # no sum of what is at most 0 is NaN
            return
        is_wrong = np.asarray(np.isnan(totals).any(2))  # (L, n)
        for at in np.nonzero(is_wrong.any(0))[0].tolist():
            self.failures.append((int(is_wrong[:, at].argmax()), False, int(sentences[at])))
        is_dead = np.asarray(~(totals > -np.inf).any(2))
        for at in np.nonzero(is_lost & ~is_wrong.any(0))[0].tolist():
            self.failures.append((int(is_dead[:, at].argmax()), not self.law.is_empty, int(sentences[at])))


def traced(codes: Ids, at: Ids, last: Ids, slot: Ids, width: int) -> tuple[Ids, Ids]:
    """(longest, n) each: the tokens of answers, and from which place each went on.

    Answer n is of the row at[n], and ends at step last[n] in the place slot[n]; codes are (L, rows, width).

    >>> codes = np.array([[[10, 14]], [[13, 16]]])  # 5 and 7; then 6 after the second of them, and 8 after the first
    >>> zero = np.array([0])
    >>> tokens, places = traced(codes, zero, np.array([1]), zero, 2)
    >>> tokens.tolist(), places.tolist()
    ([[7], [6]], [[0], [1]])
    """
    longest = int(last.max()) + 1 if len(last) else 0
    tokens, places = np.zeros((longest, len(at)), np.int64), np.zeros((longest, len(at)), np.int64)
    slot = slot.copy()
    for step in range(longest - 1, -1, -1):
        token, parent = np.divmod(codes[step, at, slot], width)
        is_on = step <= last
        tokens[step], places[step] = token, parent
        slot = np.where(is_on, parent, slot)
    return tokens, places


def follow_beam(
    stepping: Callable[[], Step[Moving, Fixed]],
    tokens: Tensor,
    moving: Moving,
    fixed: Fixed,
    *,
    width: int,
    length: int | Sequence[int],
    ends: Collection[int],
    best: int = 1,
    length_penalty: float = 0.0,
    rules: Rules = NONE,
    watch: Watch[Moving] | None = None,
    coverage_penalty: float = 0.0,
    places: Tensor | None = None,
    graphs: Graphs | None = None,
    marks: Hashable = None,
) -> list[list[Hypothesis]]:
    """What `beam` finds, computed where the tensors are; see `follow` for what is different.

    The step has `width` rows for each sentence from the first step on.
    """
    check_count(width, "width")
    check_count(best, "best")
    check_penalties(length_penalty, coverage_penalty, watch is not None)
    lengths = lengths_of(length, len(tokens))
    if not lengths:
        return []
    search = Beaming(
        stepping,
        Law(rules, lengths, ends),
        width=width,
        best=best,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        watch=watch,
        marks=marks,
    )
    sentences = first_rows(len(lengths))
    with torch.no_grad():
        given = search.given(fixed, sentences, places if coverage_penalty else None, tokens.device)
        walked(search, search.start(tokens, moving, sentences), given, sentences, graphs)
    return search.answers()
