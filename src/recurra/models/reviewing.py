"""Series that are known, reviewed: what a forecaster said of each step, and from some of them of the steps ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.encoders.covariates import Beside
from recurra.metrics.forecast_errors import LEVELS
from recurra.models.at_once import Seen, coming_values, recent_values
from recurra.models.forecast import Followed, Observed, Review
from recurra.models.forecaster import Forecaster, chosen_states
from recurra.models.series_batch import ForecasterBatch
from recurra.padding import Padded, lengthened, longest
from recurra.stacks.recurrent import States

CHUNK = 2048
"""Steps of a long series that are reviewed at once, with their states."""

ORIGINS = 128
"""The same of a Transformer, whose states are larger."""

LARGEST = 2**24
"""Numbers, about, of what is seen from some origins at once."""

INSIDE = (0.05, 0.95)
"""The quantiles between which nine of ten values should lie."""


@torch.no_grad()
def review(
    model: Forecaster,
    batch: ForecasterBatch,
    origins: Sequence[NDArray[np.int64]],
    *,
    horizon: int,
    quantiles: bool,
    paths: int = 0,
    seed: int = 0,
    summed: bool = False,
) -> list[Review]:
    """Every step predicted from those before it, and, from each origin of a row on, `horizon` steps ahead.

    With `paths`, so many continuations are drawn from each origin, and their quantiles kept: of the steps, or,
    where steps are changes, of what they sum up to.
    """
    first = 0 if model.from_nothing else 1  # the first step that is predicted
    read = model.questions(model.seen(batch))
    targets = model.targets(batch)
    states: States | None = None
    rows, steps = len(read.lengths), targets.shape[1]
    losses, means = targets.new_zeros(rows, steps), torch.full_like(targets, torch.nan)
    inside = torch.zeros_like(targets, dtype=torch.bool)
    bounds = torch.zeros(rows, steps, 2, model.size, dtype=targets.dtype, device=targets.device)
    crps = torch.full_like(targets, torch.nan)
    fans = [_Fans(len(each)) for each in origins]
    shares = model.shares(paths, horizon, seed) if paths and quantiles else None
    futures: list[list[Tensor]] = [[] for _ in range(rows)]
    outputs: Tensor | None = None
    are_wanted = any(len(each) for each in origins)  # else the fastest engines read: they keep no states
    for start in range(0, steps, CHUNK):
        end = min(start + CHUNK, steps)
        x = Padded(read.values[:, start:end], (read.lengths - 1 - start).clamp(0, end - start))
        if are_wanted:
            features, states, states_at = model.read_states(x, states, batch.beside, start=start)
        else:
            features, states = model.read(x, states, batch.beside, start=start)
        h, mask = features.values, features.mask
        outputs = _with_earlier(model, outputs, h)
        following, base = _next(model, batch, outputs, start, end)
        losses[:, start:end] = model.density.loss(following, targets[:, start:end] - base, mask)
        means[:, start:end] = (model.density.mean(following) + base).masked_fill(~mask.unsqueeze(2), torch.nan)
        if quantiles:
            every = torch.ones_like(means[:, start:end])
            low, high = (model.density.quantile(following, every * q) + base for q in INSIDE)
            inside[:, start:end] = (low <= targets[:, start:end]) & (targets[:, start:end] <= high)
            bounds[:, start:end] = torch.stack([low, high], dim=2)
        if quantiles and model.direct is None:  # which has that of the whole horizon
            known = targets[:, start:end].nan_to_num(0.0) - base
            crps[:, start:end] = model.density.crps(following, known).masked_fill(~mask.unsqueeze(2), torch.nan)
        for row, all_origins in enumerate(origins):
            # The state from which x_o is predicted, o steps being known, is that of position o − first.
            here = all_origins[(all_origins - first >= start) & (all_origins - first < end)] - first - start
            for some in np.array_split(here, -(-len(here) // _at_once(model))) if len(here) else ():
                places = torch.from_numpy(some).to(h.device)
                at, states_here = h[row, places], states_at(row, places)
                if model.direct is not None:
                    ends = places + start
                    seen = model.seen_from(outputs[row : row + 1], ends.unsqueeze(0), end - outputs.shape[1])
                    seen = Seen(seen.values.squeeze(0), seen.counts.squeeze(0))
                    best, fan = _reviewed(model, batch, seen, states_here, row, ends, horizon)
                    futures[row].append(best)
                    if quantiles:
                        fans[row].add(fan)
                    continue
                coming = model.coming(batch, torch.full_like(places, row), places + start, horizon)
                futures[row].append(model.ahead(at, states_here, horizon, beside=coming)[0])
                if shares is not None:
                    fans[row].add(_fan(model, at, states_here, shares, coming, summed=summed))
    numbers = [
        (each.cpu() if each is inside else each.cpu().double()).numpy()
        for each in (losses, means, inside, bounds, crps)
    ]
    found = []
    for row, length in enumerate(batch.values.lengths.tolist()):
        lost, expected, is_inside, within, distance = (
            np.concatenate([np.zeros((first, *part.shape[2:]), part.dtype), part[row]])[:length] for part in numbers
        )
        expected[:first] = np.nan
        ahead = torch.cat(futures[row]) if futures[row] else targets.new_zeros(0, horizon, model.size)
        later = ahead.cpu().double().numpy()
        each = Review(lost, expected, None, origins[row], later)
        if quantiles:
            each = each._replace(inside=is_inside, bounds=within.swapaxes(0, 1))
        if quantiles and model.direct is None:
            distance[:first] = np.nan
            each = each._replace(crps=distance)
        if shares is not None or (model.direct is not None and quantiles):
            each = each._replace(fan=fans[row].all(horizon, model.size))
        found.append(each)
    return found


class _Fans:
    """The fans (O, h, L, d) of the origins of a row, in their own precision: each is held once."""

    def __init__(self, origins: int) -> None:
        self._origins, self._count = origins, 0
        self._values: NDArray[np.floating] | None = None

    def add(self, fan: Tensor) -> None:
        """Those of the next origins."""
        part: NDArray[np.floating] = fan.cpu().numpy()
        if self._values is None:
            self._values = np.empty((self._origins, *part.shape[1:]), part.dtype)
        self._values[self._count : self._count + len(part)] = part
        self._count += len(part)

    def all(self, horizon: int, size: int) -> NDArray[np.floating]:
        return np.zeros((0, horizon, len(LEVELS), size)) if self._values is None else self._values


@torch.no_grad()
def observed(model: Forecaster, batch: ForecasterBatch) -> list[Observed]:
    """Each value of each row, as it looked to the density of its step given those before it."""
    first = 0 if model.from_nothing else 1
    read, targets = model.questions(model.seen(batch)), model.targets(batch)
    states: States | None = None
    rows, steps = len(read.lengths), targets.shape[1]
    found = targets.new_full((6, rows, first + steps, model.size), torch.nan)
    outputs: Tensor | None = None
    for start in range(0, steps, CHUNK):
        end = min(start + CHUNK, steps)
        x = Padded(read.values[:, start:end], (read.lengths - 1 - start).clamp(0, end - start))
        features, states = model.read(x, states, batch.beside, start=start)
        outputs = _with_earlier(model, outputs, features.values)
        h, base = _next(model, batch, outputs, start, end)
        values = targets[:, start:end].nan_to_num(0.0) - base
        low, high = (model.density.quantile(h, torch.full_like(values, q)) + base for q in INSIDE)
        costs, (below, above) = model.density.costs(h, values), model.density.sides(h, values)
        parts = torch.stack([model.density.mean(h) + base, low, high, costs, below, above])
        found[:, :, first + start : first + end] = parts.masked_fill(~features.mask.unsqueeze(-1), torch.nan)
    lengths = batch.values.lengths.tolist()
    numbers = found.cpu().double().numpy()
    return [
        Observed(parts[0], parts[1:3], parts[3], parts[4:])
        for parts in (numbers[:, row, :length] for row, length in enumerate(lengths))
    ]


@torch.no_grad()
def run_free(
    model: Forecaster, batch: ForecasterBatch, origins: Sequence[NDArray[np.int64]], *, horizon: int
) -> list[Followed]:
    """What is expected of the steps after each origin, the right values being read, and the model's own."""
    first = 0 if model.from_nothing else 1
    read, targets = model.questions(model.seen(batch)), model.targets(batch)
    x = Padded(read.values[:, :-1], (read.lengths - 1).clamp_min(0))
    features, _, states_at = model.read_states(x, None, batch.beside)
    h, found = features.values, list[Followed]()
    for row, (length, begins) in enumerate(zip(batch.values.lengths.tolist(), origins, strict=True)):
        places = torch.from_numpy(begins - first).to(h.device)
        later = places.unsqueeze(1) + torch.arange(horizon, device=h.device)
        is_there = later < length - first
        later = later.clamp(max=max(0, length - first - 1))
        wanted = targets[row, later].masked_fill(~is_there.unsqueeze(2), torch.nan)
        some = places.split(_at_once(model)) if len(places) else ()
        free = [_ahead_from(model, batch, h, states_at, row, at, 0, horizon)[1] for at in some]
        forced = h[row, later]
        both = torch.stack([forced, torch.cat(free) if free else forced])
        every = torch.ones_like(wanted[..., 0], dtype=torch.bool)
        costs = torch.stack([model.density.loss(each, wanted, every) for each in both])
        numbers = (each.cpu().double().numpy() for each in (model.density.mean(both), costs, wanted))
        found.append(Followed(*numbers))
    return found


def _ahead_from(
    model: Forecaster,
    batch: ForecasterBatch,
    features: Tensor,
    states_at: Callable[[int, Tensor], States],
    row: int,
    places: Tensor,
    start: int,
    horizon: int,
) -> tuple[Tensor, Tensor]:
    """The steps after some places of a row, of which features (B, T, H) from `start` on are known."""
    coming = model.coming(batch, torch.full_like(places, row), places + start, horizon)
    return model.ahead(features[row, places], states_at(row, places), horizon, beside=coming)


def _next(model: Forecaster, batch: ForecasterBatch, h: Tensor, start: int, end: int) -> tuple[Tensor, Tensor | float]:
    """What the density of the next step is made of after the steps from `start` to `end`, and what it adds to.

    Of features (B, T, H) of the steps before `end`, of which there may be some before `start`.
    """
    if model.direct is None:
        return h, 0.0
    values, features, bases = batch.values.values.to(h.dtype), list[Tensor](), list[Tensor]()
    for some in torch.arange(start, end, device=h.device).split(max(1, _seen_at_once(model) // max(1, len(h)))):
        ends = some.expand(len(h), -1)
        known = None if batch.future is None else coming_values(batch.future.to(h.dtype), ends, 1, 0.0)
        base = model.direct.base(recent_values(values, ends, model.direct.lags), 1).squeeze(2)
        of_step = model.direct(model.seen_from(h, ends, end - h.shape[1]), known, 1).squeeze(2)
        found, rest = model.placed(of_step, base, batch.beside)
        features.append(found)
        bases.append(torch.zeros_like(base) + rest)
    return torch.cat(features, dim=1), torch.cat(bases, dim=1)


def _with_earlier(model: Forecaster, earlier: Tensor | None, h: Tensor) -> Tensor:
    """Features (B, T, H) after as many of those before them as can be seen."""
    if model.direct is None or earlier is None or model.direct.reach == 1:
        return h
    return torch.cat([earlier[:, -(model.direct.reach - 1) :], h], dim=1)


def _reviewed(
    model: Forecaster, batch: ForecasterBatch, seen: Seen, states: States, row: int, at: Tensor, horizon: int
) -> tuple[Tensor, Tensor]:
    """The best steps ahead (O, h, d) of some steps of a row, and their quantiles (O, h, L, d)."""
    assert model.direct is not None
    values = batch.values.values[row : row + 1].to(seen.values.dtype)
    coming = model.coming(batch, torch.full_like(at, row), at, max(horizon, model.direct.horizon))
    recent = recent_values(values, at.unsqueeze(0), model.direct.lags).squeeze(0)
    best, features, base = model.directly(seen, states, recent, horizon, coming)
    fan = model.quantiles(features, base) if model.has_quantiles else best.new_zeros(0)
    return best, fan


def _fan(
    model: Forecaster, features: Tensor, states: States, shares: Tensor, coming: Beside | None, *, summed: bool
) -> Tensor:
    """(O, h, L, d): quantiles of the paths from O origins, some of which are followed at once."""
    paths, horizon, found = len(shares), shares.shape[1], list[Tensor]()
    levels = torch.tensor(LEVELS, dtype=longest(features.device), device=features.device)
    for some in torch.arange(len(features), device=features.device).split(max(1, _at_once(model) // paths)):
        copies = some.repeat_interleave(paths)
        drawn = shares.repeat(len(some), 1, 1).to(features)
        states_here = chosen_states(states, lambda field: field[copies])  # noqa: B023
        beside = None if coming is None else coming.chosen(copies)
        values = model.ahead(features[copies], states_here, horizon, drawn, beside)[0]
        values = lengthened(values).view(len(some), paths, horizon, model.size)
        values = values.cumsum(2) if summed else values
        found.append(torch.quantile(values, levels, dim=1).permute(1, 2, 0, 3))
    return torch.cat(found)


def _at_once(model: Forecaster) -> int:
    """Origins of a row from which steps are predicted at once: each has keys and values of its own."""
    if model.direct is not None:  # each has features of all steps ahead
        return max(1, min(CHUNK * ORIGINS // (len(LEVELS) * model.direct.horizon), _seen_at_once(model)))
    return CHUNK if model.transformer is None else ORIGINS


def _seen_at_once(model: Forecaster) -> int:
    """Origins from each of which the last features of the network are seen at once."""
    assert model.direct is not None
    return max(1, LARGEST // (model.direct.reach * model.stack.output_size))
