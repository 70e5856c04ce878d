"""The forecaster: vectors, a network over those before, and a density of the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra.config import ForecastingModel
from recurra.data.store import Encoded, Rows
from recurra.densities import Density
from recurra.encoders.dropout import LockedDropout
from recurra.models.rows import padded
from recurra.named import built
from recurra.padding import Padded, beside, coarser, widened
from recurra.recording import both
from recurra.settings import Part, about
from recurra.stacks.recurrent import Recurrent, States
from recurra.transformer import Transformer

CHUNK = 2048
"""Steps of a long series that are reviewed at once, with their states."""

ORIGINS = 128
"""The same of a Transformer, whose states are larger."""

INSIDE = (0.05, 0.95)
"""The quantiles between which nine of ten values should lie."""


class ForecasterBatch(NamedTuple):
    """Some sequences as tensors."""

    values: Padded  # (B, T, d)
    known: Tensor  # (B, T, d), False where a value was missing


def recurring_series(batch: ForecasterBatch) -> ForecasterBatch:
    """The batch with empty rows and steps, of a size that occurs again."""
    B, T = batch.known.shape[:2]
    B, T = coarser(B, parts=2), coarser(T)
    return ForecasterBatch(batch.values.widened(B, T), widened(batch.known, B, T))


class Forecast(NamedTuple):
    """How one sequence goes on."""

    values: NDArray[np.float64]  # (h, d)
    means: NDArray[np.float64]  # (h, d): what was expected; of values that are 0 or 1, the probability of a 1
    paths: NDArray[np.float64] | None  # (n, h, d), where some were drawn
    score: float  # log p of the values


class Review(NamedTuple):
    """What was predicted for one sequence that is known, from each of some steps on."""

    losses: NDArray[np.float64]  # (T,): the loss of each step given those before; 0 for one that is not predicted
    next: NDArray[np.float64]  # (T, d): what was expected at each step; NaN for one that is not predicted
    inside: NDArray[np.bool_] | None  # (T, d): whether the value lies between its quantiles
    origins: NDArray[np.int64]  # (O,): the number of steps that were known
    ahead: NDArray[np.float64]  # (O, h, d): the steps after each


class Forecaster(nn.Module):
    """values → [linear layer → locked dropout →] network → locked dropout → density.

    h_t        = Recurrent(W x_1 … W x_t)          or a causal Transformer, whose states are keys and values
    x_{t+1}    ~ density(h_t)

    With `from_nothing`, a vector of zeros is read first, and the first step is predicted too.
    """

    def __init__(self, settings: ForecastingModel, *, output: Part, size: int, from_nothing: bool) -> None:
        super().__init__()
        self.size = size
        self.from_nothing = from_nothing
        self.input_dropout = settings.input_dropout
        self.embedding = nn.Linear(size, settings.embedding) if settings.embedding else None
        self.drop = LockedDropout(settings.dropout)
        self.recurrent: Recurrent | None = None
        self.transformer: Transformer | None = None
        if settings.encoder == "transformer":
            own = settings.transformer
            self.transformer = Transformer(
                settings.embedding or size,
                settings.widths[0],
                layers=len(settings.widths),
                heads=own.heads,
                feed_forward=own.feed_forward,
                dropout=own.dropout,
                causal=True,
                context=own.context,
                form=own.form,
            )
        else:
            self.recurrent = Recurrent(
                settings.cell,
                settings.embedding or size,
                settings.hidden,
                layers=settings.layers,
                skip=settings.skip,
                dropout=settings.dropout,
                locked=True,
                engine=settings.engine,
            )
        with about("model", "output"):
            self.density = built(Density, output, self.stack.output_size, size)

    @property
    def stack(self) -> Recurrent | Transformer:
        """What reads the steps so far."""
        found = self.recurrent if self.transformer is None else self.transformer
        assert found is not None
        return found

    def read(self, x: Padded, states: States | None = None) -> tuple[Padded, States]:
        """(B, T, H): what the density sees after each step, and the states after the last."""
        outputs, states = self.stack(self._inputs(x), states)
        return self.drop(outputs), states

    def read_states(self, x: Padded, states: States | None) -> tuple[Padded, States, Callable[[int, Tensor], States]]:
        """What `read` gives, and the states of one row after each of some of its steps, as rows of their own."""
        inputs = self._inputs(x)
        if self.transformer is None:
            assert self.recurrent is not None
            outputs, every = self.recurrent(inputs, states, every=True)
            last = _chosen(every, lambda field: field[:, -1])
            return self.drop(outputs), last, lambda row, at: _chosen(every, lambda field: field[row, at])
        transformer, before = self.transformer, states
        reading = transformer.read(inputs, states)
        outputs = Padded(reading.values, x.lengths).zeroed()
        after = transformer.after(reading, inputs, states)
        return self.drop(outputs), after, lambda row, at: transformer.states_at(reading, inputs, before, row, at)

    @property
    def at_once(self) -> int:
        """Origins of a row from which steps are predicted at once: each has keys and values of its own."""
        return CHUNK if self.transformer is None else ORIGINS

    def _inputs(self, x: Padded) -> Padded:
        """What the network reads of each step."""
        values = x.values.to(next(self.parameters()).dtype)
        if self.training and self.input_dropout:
            values = values.masked_fill(torch.rand_like(values) < self.input_dropout, 0)
        inputs = Padded(values, x.lengths)
        if self.embedding is not None:  # else a mask for all steps would take a whole column away
            inputs = self.drop(Padded(self.embedding(values), x.lengths))
        return inputs

    def questions(self, values: Padded) -> Padded:
        """What is read to predict every step and the one after the last: zeros before the first, if that is one."""
        if not self.from_nothing:
            return values
        zeros = values.values.new_zeros(len(values.lengths), 1, self.size)
        return Padded(torch.cat([zeros, values.values], dim=1), both(lambda n: n + 1, values.lengths))

    def targets(self, batch: ForecasterBatch) -> Tensor:
        """The steps that are predicted; NaN where one is not known."""
        values = batch.values.values.to(next(self.parameters()).dtype).masked_fill(~batch.known, torch.nan)
        return values if self.from_nothing else values[:, 1:]

    def loss(self, batch: ForecasterBatch) -> tuple[Tensor, int]:
        """The summed loss of all steps, and how many they are."""
        read = self.questions(batch.values)
        x = Padded(read.values[:, :-1], both(lambda n: (n - 1).clamp_min(0), read.lengths))  # the last has no answer
        if x.values.shape[1] == 0:
            return x.values.new_zeros((), requires_grad=True), 0
        features, _ = self.read(x)
        losses = self.density.loss(features.values, self.targets(batch), features.mask)
        return losses.sum(), int(x.lengths.sum())

    def step(self, x: Tensor, states: States) -> tuple[Tensor, States]:
        """(B, H) features after one more step, (B, d)."""
        return self.stack.step(x if self.embedding is None else self.embedding(x), states)

    @torch.no_grad()
    def ahead(
        self, features: Tensor, states: States, horizon: int, shares: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(B, h, d): the steps that follow, each fed back, and the features (B, h, H) that they come from.

        Where there are shares, (B, h, d), the steps are drawn: they are the quantiles at these shares.
        """
        found: list[Tensor] = []
        seen = [features]
        for step in range(horizon):
            if step:
                features, states = self.step(found[-1], states)
                seen.append(features)
            share = None if shares is None else shares[:, step]
            found.append(self.density.best(features) if share is None else self.density.quantile(features, share))
        return torch.stack(found, dim=1), torch.stack(seen, dim=1)

    @torch.no_grad()
    def predict(self, batch: ForecasterBatch, *, horizon: int, paths: int = 0, seed: int = 0) -> list[Forecast]:
        """How each row goes on. What is drawn for a row depends on the seed alone, not on its neighbours."""
        read = self.questions(batch.values)
        outputs, states = self.read(read)
        rows = len(read.lengths)
        features = outputs.values.new_zeros(rows, self.stack.output_size)
        if read.values.shape[1]:
            last = (beside(read.lengths, features) - 1).clamp_min(0)
            features = outputs.values[torch.arange(rows, device=features.device), last]
        found, seen = self.ahead(features, states, horizon)
        log_p = -self.density.loss(seen, found, torch.ones_like(found[:, :, 0], dtype=torch.bool)).sum(1)
        drawn = None
        if paths:
            generator = torch.Generator().manual_seed(seed)
            shares = torch.rand(paths, horizon, self.size, generator=generator, dtype=torch.float64)
            shares = shares.repeat(rows, 1, 1).to(features)  # (B × paths, h, d), the paths of a row together
            copies = _chosen(states, lambda field: field.repeat_interleave(paths, 0))
            drawn = self.ahead(features.repeat_interleave(paths, 0), copies, horizon, shares)[0].double().cpu().numpy()
            drawn = drawn.reshape(rows, paths, horizon, self.size)
        values, means, scores = (tensor.double().cpu().numpy() for tensor in (found, self.density.mean(seen), log_p))
        return [
            Forecast(values[row], means[row], drawn[row] if drawn is not None else None, float(scores[row]))
            for row in range(rows)
        ]

    @torch.no_grad()
    def review(
        self, batch: ForecasterBatch, origins: Sequence[NDArray[np.int64]], *, horizon: int, quantiles: bool
    ) -> list[Review]:
        """Every step predicted from those before it, and, from each origin of a row on, `horizon` steps ahead."""
        first = 0 if self.from_nothing else 1  # the first step that is predicted
        read = self.questions(batch.values)
        targets = self.targets(batch)
        states: States | None = None
        rows, steps = len(read.lengths), targets.shape[1]
        losses, means = targets.new_zeros(rows, steps), torch.full_like(targets, torch.nan)
        inside = torch.zeros_like(targets, dtype=torch.bool)
        futures: list[list[Tensor]] = [[] for _ in range(rows)]
        for start in range(0, steps, CHUNK):
            end = min(start + CHUNK, steps)
            x = Padded(read.values[:, start:end], (read.lengths - 1 - start).clamp(0, end - start))
            features, states, states_at = self.read_states(x, states)
            h, mask = features.values, features.mask
            losses[:, start:end] = self.density.loss(h, targets[:, start:end], mask)
            means[:, start:end] = self.density.mean(h).masked_fill(~mask.unsqueeze(2), torch.nan)
            if quantiles:
                low, high = (self.density.quantile(h, torch.full_like(means[:, start:end], q)) for q in INSIDE)
                inside[:, start:end] = (low <= targets[:, start:end]) & (targets[:, start:end] <= high)
            for row, all_origins in enumerate(origins):
                # The state from which x_o is predicted, o steps being known, is that of position o − first.
                here = all_origins[(all_origins - first >= start) & (all_origins - first < end)] - first - start
                for some in np.array_split(here, -(-len(here) // self.at_once)) if len(here) else ():
                    places = torch.from_numpy(some).to(h.device)
                    futures[row].append(self.ahead(h[row, places], states_at(row, places), horizon)[0])
        numbers = [tensor.cpu().numpy() for tensor in (losses.double(), means.double(), inside)]
        found = []
        for row, length in enumerate(batch.values.lengths.tolist()):
            lost, expected, is_inside = (
                np.concatenate([np.zeros((first, *part.shape[2:]), part.dtype), part[row]])[:length] for part in numbers
            )
            expected[:first] = np.nan
            ahead = torch.cat(futures[row]) if futures[row] else targets.new_zeros(0, horizon, self.size)
            found.append(
                Review(lost, expected, is_inside if quantiles else None, origins[row], ahead.double().cpu().numpy())
            )
        return found


def batched(rows: Sequence[Encoded]) -> ForecasterBatch:
    """Encoded sequences as one batch."""
    rows = Rows.of(rows)
    return ForecasterBatch(padded(rows, "values", np.float32), padded(rows, "known", np.bool_).values)


def _chosen(states: States, choose: Callable[[Tensor], Tensor]) -> States:
    return tuple(tuple(type(state)(*(choose(field) for field in state)) for state in layer) for layer in states)
