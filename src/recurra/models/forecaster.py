"""The forecaster: vectors, a network over those before, and a density of the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra.cells import reads_gaps, with_gaps
from recurra.config import ForecastingModel
from recurra.config.forecasting import POINTS
from recurra.densities import Density
from recurra.encoders.covariates import Beside, Covariates
from recurra.encoders.dropout import LockedDropout
from recurra.metrics.forecast_errors import LEVELS
from recurra.models.at_once import AtOnce, Seen, coming_values, recent_values
from recurra.models.attending import Attending
from recurra.models.direct import Direct
from recurra.models.forcing import ALWAYS, Coins, Forced
from recurra.models.forecast import Forecast
from recurra.models.series_batch import ForecasterBatch
from recurra.named import built
from recurra.padding import Padded, beside
from recurra.recording import both
from recurra.settings import Part, SettingError, about, name_of
from recurra.stacks.recurrent import Recurrent, States
from recurra.transformer import Transformer


class Ahead(NamedTuple):
    """The steps after the last ones of B rows, and what is said of them."""

    values: Tensor  # (B, h, d)
    features: Tensor  # (B, h, F): what the density of each step is made of
    base: Tensor | None  # (B, h, d): what is added to all that it says; None where steps are fed back


class Said(NamedTuple):
    """How B rows go on."""

    values: Tensor  # (B, h, d)
    means: Tensor  # (B, h, d)
    log_p: Tensor  # (B, h): of the values
    fan: Tensor | None = None  # (B, h, L, d): quantiles at LEVELS, of direct forecasts

    def rows(self, paths: NDArray[np.float64] | None = None) -> list[Forecast]:
        """The forecast of each row, with its paths (n, h, d) if some were drawn."""
        log_p = self.log_p.sum(1)
        values, means, scores = (each.cpu().double().numpy() for each in (self.values, self.means, log_p))
        fan = None if self.fan is None else self.fan.cpu().double().numpy()
        return [
            Forecast(
                values[row],
                means[row],
                None if paths is None else paths[row],
                float(scores[row]),
                None if fan is None else fan[row],
            )
            for row in range(len(values))
        ]


AHEAD: dict[str, type[AtOnce]] = {"direct": Direct, "attention": Attending}
"""What makes all steps of a horizon at once, by the name in `model.ahead`."""


class Forecaster(nn.Module):
    """values → [linear layer → locked dropout →] network → locked dropout → density.

    h_t        = Recurrent(W x_1 … W x_t)          or a causal Transformer, whose states are keys and values
    x_{t+1}    ~ density(h_t)

    With `from_nothing`, a vector of zeros is read first, and the first step is predicted too. Where there are
    covariates, u_t stands for x_t: what is known beside the values of a step. A cell that reads gaps is given
    [x_t; m_t; δ_t; …]: the values, which of them were observed, and the time since the step before; a value that was
    predicted counts as observed, one step later. With `settings.ahead` = "direct" or "attention", the density is of
    all steps of a horizon at once (`AtOnce`); steps beyond it go on from its best ones.
    """

    def __init__(
        self,
        settings: ForecastingModel,
        *,
        output: Part,
        size: int,
        from_nothing: bool,
        covariates: Covariates | None = None,
        season: int = 1,
    ) -> None:
        super().__init__()
        self.size = size
        self.from_nothing = from_nothing
        self.input_dropout = settings.input_dropout
        self.covariates = covariates
        self.reads_gaps = settings.encoder == "rnn" and reads_gaps(settings.cell)
        if self.reads_gaps and settings.embedding:
            raise SettingError(
                f"model.embedding = {settings.embedding} mixes values that were observed with values that are missing "
                f"before model.cell = '{name_of(settings.cell)}' can tell them apart. Set model.embedding = 0.",
                ("model", "embedding"),
            )
        width = 2 * size + 1 if self.reads_gaps else size  # of what is read at a step
        width += 0 if covariates is None else covariates.size
        self.embedding = nn.Linear(width, settings.embedding) if settings.embedding else None
        self.drop = LockedDropout(settings.dropout)
        self.recurrent: Recurrent | None = None
        self.transformer: Transformer | None = None
        if settings.encoder == "transformer":
            own = settings.transformer
            self.transformer = Transformer(
                settings.embedding or width,
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
                with_gaps(settings.cell, size) if self.reads_gaps else settings.cell,
                settings.embedding or width,
                settings.hidden,
                layers=settings.layers,
                mix=settings.mix,
                skip=settings.skip,
                dropout=settings.dropout,
                locked=True,
                engine=settings.engine,
            )
        self.direct: AtOnce | None = None
        if settings.is_at_once:
            assert settings.ahead is not None
            assert settings.horizon is not None
            assert settings.lags is not None
            known = 0 if covariates is None else covariates.future
            self.direct = AHEAD[settings.ahead].of(
                settings,
                self.stack.output_size,
                size,
                horizon=settings.horizon,
                lags=settings.lags,
                season=season,
                future_size=known,
            )
        seen = self.stack.output_size if self.direct is None else self.direct.output_size
        with about("model", "output"):
            self.density = built(Density, output, seen, size)
        self.has_quantiles = name_of(output) not in POINTS

    @property
    def stack(self) -> Recurrent | Transformer:
        """What reads the steps so far."""
        found = self.recurrent if self.transformer is None else self.transformer
        assert found is not None
        return found

    def read(
        self, x: Padded, states: States | None = None, beside: Beside | None = None, *, start: int = 0
    ) -> tuple[Padded, States]:
        """(B, T, H): what the density sees after each step from `start` on, and the states after the last."""
        outputs, states = self.stack(self._inputs(x, beside, start), states)
        return self._told(self.drop(outputs), beside), states

    def _told(self, features: Padded, beside: Beside | None) -> Padded:
        """Features (B, T, F) with the unit of each row, where the density is made of them and needs to know it."""
        if self.direct is not None:
            return features
        return Padded(self._with_unit(features.values, beside), features.lengths)

    def _with_unit(self, features: Tensor, beside: Beside | None) -> Tensor:
        if beside is None or beside.unit is None:
            return features
        return self.density.with_unit(features, beside.unit)

    def placed(self, features: Tensor, base: Tensor, beside: Beside | None) -> tuple[Tensor, Tensor | float]:
        """What the density of steps ahead is made of, and what is added to what it says."""
        features, rest = self.density.with_base(features, base)
        return self._with_unit(features, beside), rest

    def read_states(
        self, x: Padded, states: States | None, beside: Beside | None = None, *, start: int = 0
    ) -> tuple[Padded, States, Callable[[int, Tensor], States]]:
        """What `read` gives, and the states of one row after each of some of its steps, as rows of their own."""
        inputs = self._inputs(x, beside, start)
        if self.transformer is None:
            assert self.recurrent is not None
            outputs, every = self.recurrent(inputs, states, every=True)
            last = chosen_states(every, lambda field: field[:, -1])
            told = self._told(self.drop(outputs), beside)
            return told, last, lambda row, at: chosen_states(every, lambda field: field[row, at])
        transformer, before = self.transformer, states
        reading = transformer.read(inputs, states)
        outputs = Padded(reading.values, x.lengths).zeroed()
        after = transformer.after(reading, inputs, states)
        told = self._told(self.drop(outputs), beside)
        return told, after, lambda row, at: transformer.states_at(reading, inputs, before, row, at)

    def _joined(self, values: Tensor, beside: Beside | None, start: int) -> Tensor:
        """(B, T, d + size): values with what is known beside them."""
        if self.covariates is None or beside is None:
            return values
        found: Tensor = self.covariates(values, beside, start=start)
        return found

    def _inputs(self, x: Padded, beside: Beside | None = None, start: int = 0) -> Padded:
        """What the network reads of each step."""
        values = x.values.to(next(self.parameters()).dtype)
        if self.training and self.input_dropout:
            values = self._dropped(values)
        values = self._joined(values, beside, start)
        inputs = Padded(values, x.lengths)
        if self.embedding is not None:  # else a mask for all steps would take a whole column away
            inputs = self.drop(Padded(self.embedding(values), x.lengths))
        return inputs

    def _dropped(self, values: Tensor) -> Tensor:
        """Some values set to 0; where gaps are read, they are missing."""
        is_lost = torch.rand_like(values[..., : self.size]) < self.input_dropout
        if self.reads_gaps:
            is_lost = torch.cat([is_lost, is_lost, torch.zeros_like(is_lost[..., :1])], dim=-1)
        return values.masked_fill(is_lost, 0)

    def seen(self, batch: ForecasterBatch) -> Padded:
        """(B, T, n): all that is read of the steps."""
        if not self.reads_gaps:
            return batch.values
        assert batch.gaps is not None, "the batch was made without gaps"
        return Padded(torch.cat([batch.values.values, batch.gaps.to(batch.values.values)], -1), batch.values.lengths)

    def questions(self, values: Padded) -> Padded:
        """What is read to predict every step and the one after the last: zeros before the first, if that is one."""
        if not self.from_nothing:
            return values
        zeros = values.values.new_zeros(len(values.lengths), 1, values.values.shape[2])
        return Padded(torch.cat([zeros, values.values], dim=1), both(lambda n: n + 1, values.lengths))

    def targets(self, batch: ForecasterBatch) -> Tensor:
        """The steps that are predicted; NaN where one is not known."""
        values = batch.values.values.to(next(self.parameters()).dtype).masked_fill(~batch.known, torch.nan)
        return values if self.from_nothing else values[:, 1:]

    def loss(self, batch: ForecasterBatch, *, forced: Forced = ALWAYS) -> tuple[Tensor, int]:
        """The summed loss of all steps, and how many they are; other than right values are read only in training."""
        if self.direct is not None:
            return self._loss_ahead(batch)
        read = self.questions(self.seen(batch))
        x = Padded(read.values[:, :-1], both(lambda n: (n - 1).clamp_min(0), read.lengths))  # the last has no answer
        if x.values.shape[1] == 0:
            return x.values.new_zeros((), requires_grad=True), 0
        beside = batch.beside
        if self.training and self.covariates is not None:
            beside = self.covariates.held(beside)
        is_led = self.training and not forced.is_always
        features = self.led(x, forced, beside) if is_led else self.read(x, beside=beside)[0]
        losses = self.density.loss(features.values, self.targets(batch), features.mask)
        return losses.sum(), int(x.lengths.sum())

    def _loss_ahead(self, batch: ForecasterBatch) -> tuple[Tensor, int]:
        """The summed loss of forecasts from some steps of each row, and how many; of one, its mean over the horizon."""
        assert self.direct is not None
        assert batch.origin is not None
        assert batch.origins is not None
        beside = batch.beside
        if self.training and self.covariates is not None:
            beside = self.covariates.held(beside)
        outputs = self.read(self.seen(batch), beside=beside)[0].values
        numbers = torch.arange(batch.most, device=outputs.device)
        ends, is_origin = batch.origin.unsqueeze(1) + numbers, numbers < batch.origins.unsqueeze(1)
        values = batch.values.values.to(outputs.dtype)
        gold = coming_values(values.masked_fill(~batch.known, torch.nan), ends, self.direct.horizon, torch.nan)
        features, base = self._ahead_of(outputs, values, batch.future, ends)
        features, rest = self.placed(features, base, beside)
        losses = self.density.loss(features, gold - rest, is_origin.unsqueeze(2).expand(gold.shape[:-1]))
        return losses.sum() / self.direct.horizon, batch.starts

    def _ahead_of(
        self, outputs: Tensor, values: Tensor, future: Tensor | None, ends: Tensor, steps: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Features (B, O, K, F) and base (B, O, K, d) of the steps after the steps `ends` (B, O) of some rows."""
        assert self.direct is not None
        ends = ends.clamp_max(values.shape[1] - 1)
        count = self.direct.horizon if steps is None else steps
        known = None if future is None else coming_values(future.to(values.dtype), ends, count, 0.0)
        base = self.direct.base(recent_values(values, ends, self.direct.lags), steps)
        return self.direct(self.seen_from(outputs, ends), known, steps), base

    def seen_from(self, outputs: Tensor, ends: Tensor, start: int = 0) -> Seen:
        """What is seen from the steps `ends` (B, O) of rows, of features (B, T, H) that begin with the step `start`."""
        assert self.direct is not None
        reach = self.direct.reach
        return Seen(recent_values(self.direct.kept(outputs), ends - start, reach), (ends + 1).clamp_max(reach))

    def directly(
        self, seen: Seen, states: States, recent: Tensor, horizon: int, coming: Beside | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The best values (N, h, d) of the steps ahead, their features (N, h, F) and what is added to them (N, h, d).

        Of N origins: what is seen of the last steps, states, the last L values (N, L, d) and what is known of the steps
        ahead. Beyond the horizon of training the best values are read as if they had been measured.
        """
        assert self.direct is not None
        reach = self.direct.reach
        parts: list[tuple[Tensor, Tensor, Tensor]] = []
        for start in range(0, horizon, self.direct.horizon):
            if start:
                x = Padded.full(self._as_observed(parts[-1][0]))
                outputs, states = self.read(x, states, coming, start=start - self.direct.horizon)
                kept = torch.cat([seen.values, self.direct.kept(outputs.values)], dim=1)[:, -reach:]
                seen = Seen(kept, (seen.counts + self.direct.horizon).clamp_max(reach))
                recent = torch.cat([recent, parts[-1][0]], dim=1)[:, -self.direct.lags :]
            features, base = self.direct(seen, self._known_ahead(coming, start)), self.direct.base(recent)
            features, rest = self.placed(features, base, coming)
            parts.append(((best := self.density.best(features)) + rest, features, torch.zeros_like(best) + rest))
        best, features, base = (torch.cat(each, dim=1)[:, :horizon] for each in zip(*parts, strict=True))
        return best, features, base

    def _known_ahead(self, coming: Beside | None, start: int = 0) -> Tensor | None:
        """(N, K, k): what is known of the steps of a horizon, the first of which is the step `start` ahead."""
        assert self.direct is not None
        if coming is None or coming.future is None:
            return None
        places = torch.arange(start, start + self.direct.horizon, device=coming.future.device)
        return coming.future[:, places.clamp_max(coming.future.shape[1] - 1)]

    def quantiles(self, features: Tensor, base: Tensor) -> Tensor:
        """(N, h, L, d): the quantiles at LEVELS of the steps ahead."""
        found: Tensor = self.density.quantiles(features, LEVELS) + base.unsqueeze(2)
        return found

    def led(self, x: Padded, forced: Forced, beside: Beside | None = None) -> Padded:
        """Scheduled sampling: features (B, T, H), each step reading the right values or the model's own.

            x̃_t = x_t with chance p,  else what is expected of x_t given x̃_1 … x̃_{t-1}, or drawn from its density

        Masks that last a sequence are drawn once; a value that the model reads of its own has no gradient.
        """
        gold = x.values.to(next(self.parameters()).dtype)
        rows, steps = gold.shape[:2]
        coins = Coins(forced, rows, gold.device)
        of_input = None if self.embedding is None else self._mask(gold, self.embedding.out_features)
        of_output = self._mask(gold, self.stack.output_size)
        advance = self._advancing(rows, gold)
        states, values, outputs = self.stack.start(rows, gold), gold[:, 0], list[Tensor]()
        for number in range(steps):
            if self.input_dropout:
                values = self._dropped(values)
            joined = self._joined(values.unsqueeze(1), beside, number).squeeze(1)
            read = joined if self.embedding is None else self.embedding(joined) * of_input
            h, states = advance(read, states)
            outputs.append(self._with_unit(h * of_output, beside))
            if number + 1 < steps:
                with torch.no_grad():
                    own = self._own(outputs[-1], forced)
                right = gold[:, number + 1]
                own = torch.cat([own, right[:, self.size :]], dim=1)  # what was missing stays so
                values = torch.where(coins.throw().unsqueeze(1), right, own)
        return Padded(torch.stack(outputs, dim=1), x.lengths).zeroed()

    def _advancing(self, rows: int, like: Tensor) -> Callable[[Tensor, States], tuple[Tensor, States]]:
        """One step of the network for so many rows, with what is drawn once for a sequence."""
        if self.recurrent is None:
            return self.stack.step
        recurrent = self.recurrent
        fixed, masks = recurrent.fixed(rows, like), recurrent.masks(rows, like)
        return lambda x, states: recurrent.advance(x, states, fixed, masks=masks)

    def _own(self, features: Tensor, forced: Forced) -> Tensor:
        """(B, d): what the model says of the next step."""
        if forced.replacement == "greedy":
            return self.density.best(features)
        shares = torch.rand(len(features), self.size, dtype=features.dtype, device=features.device)
        return self.density.quantile(features, shares)

    def _mask(self, like: Tensor, size: int) -> Tensor:
        """(B, size): what locked dropout takes of every step of a row."""
        found: Padded = self.drop(Padded.full(like.new_ones(len(like), 1, size)))
        return found.values.squeeze(1)

    def _as_observed(self, x: Tensor) -> Tensor:
        """Predicted steps, (..., d), as they are read: where gaps are read too, observed one step after the last."""
        return torch.cat([x, torch.ones_like(x), torch.ones_like(x[..., :1])], dim=-1) if self.reads_gaps else x

    def step(self, x: Tensor, states: States, beside: Beside | None = None, number: int = 0) -> tuple[Tensor, States]:
        """(B, H) features after one more step, (B, d), of which `beside` knows more under its number."""
        x = self._as_observed(x)
        x = self._joined(x.unsqueeze(1), beside, number).squeeze(1)
        h, states = self.stack.step(x if self.embedding is None else self.embedding(x), states)
        return (h if self.direct is not None else self._with_unit(h, beside)), states

    @torch.no_grad()
    def ahead(
        self,
        features: Tensor,
        states: States,
        horizon: int,
        shares: Tensor | None = None,
        beside: Beside | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(B, h, d): the steps that follow, each fed back, and the features (B, h, H) that they come from.

        Where there are shares, (B, h, d), the steps are drawn: they are the quantiles at these shares. `beside` is
        what is known of these steps (`_coming`).
        """
        found: list[Tensor] = []
        seen = [features]
        for step in range(horizon):
            if step:
                features, states = self.step(found[-1], states, beside, step - 1)
                seen.append(features)
            share = None if shares is None else shares[:, step]
            found.append(self.density.best(features) if share is None else self.density.quantile(features, share))
        return torch.stack(found, dim=1), torch.stack(seen, dim=1)

    def coming(self, batch: ForecasterBatch, rows: Tensor, at: Tensor, horizon: int) -> Beside | None:
        """What is known of the steps after step `at` of some rows of a batch."""
        if self.covariates is None:
            return None if batch.unit is None else Beside(unit=batch.unit[rows])
        return self.covariates.ahead(batch.beside, rows, at, horizon)

    def shares(self, paths: int, horizon: int, seed: int) -> Tensor:
        """(n, h, d): the shares at which paths are drawn."""
        generator = torch.Generator().manual_seed(seed)
        return torch.rand(paths, horizon, self.size, generator=generator, dtype=torch.float64)

    @torch.no_grad()
    def predict(self, batch: ForecasterBatch, *, horizon: int, paths: int = 0, seed: int = 0) -> list[Forecast]:
        """How each row goes on. What is drawn for a row depends on the seed alone, not on its neighbours."""
        read = self.questions(self.seen(batch))
        outputs, states = self.read(read, beside=batch.beside)
        last = (beside(read.lengths, outputs.values) - 1).clamp_min(0)
        return self._forecasts(batch, outputs.values, states, last, horizon=horizon, paths=paths, seed=seed)

    @torch.no_grad()
    def go_on(
        self,
        batch: ForecasterBatch,
        states: States | None,
        memory: Tensor | None,
        *,
        new: int,
        horizon: int,
        paths: int = 0,
        seed: int = 0,
    ) -> tuple[Forecast, States | None, Tensor]:
        """How the only row goes on, and states and memory before its last step; `new` of its steps were not read yet.

        The memory, (1, n, H), has the features of the steps before, as many as forecasts look at. With the last step
        what was expected of the coming one is read, which may turn out otherwise.
        """
        read = self.questions(self.seen(batch)).values
        last, first = read.shape[1] - 1, read.shape[1] - new
        parts = [] if memory is None else [memory]
        if new > 1:
            features, states = self.read(Padded.full(read[:, first:last]), states, batch.beside, start=first)
            parts.append(features.values)
        newest, after = self.read(Padded.full(read[:, last:]), states, batch.beside, start=last)
        before = torch.cat([newest.values[:, :0], *parts], dim=1)
        before = before[:, before.shape[1] - min(before.shape[1], self.reach - 1) :]
        outputs = torch.cat([before, newest.values], dim=1)
        at, start = torch.full((1,), last, device=read.device), read.shape[1] - outputs.shape[1]
        [found] = self._forecasts(batch, outputs, after, at, start=start, horizon=horizon, paths=paths, seed=seed)
        return found, states, before

    @property
    def reach(self) -> int:
        """The last steps whose features a forecast is made from."""
        return 1 if self.direct is None else self.direct.reach

    def _forecasts(
        self,
        batch: ForecasterBatch,
        outputs: Tensor,
        states: States,
        last: Tensor,
        *,
        horizon: int,
        paths: int,
        seed: int,
        start: int = 0,
    ) -> list[Forecast]:
        """How each row goes on after its last step, from states and features (B, T, H) from the step `start` on."""
        if self.direct is not None:
            return self.said(self._directly(batch, outputs, states, last, horizon, start)).rows()
        rows = len(last)
        every = torch.arange(rows, device=outputs.device)
        features, coming = self._last(batch, outputs, last, horizon, start)
        said = self.said(self.recursively(features, states, horizon, coming))
        drawn = None
        if paths:
            # (B × paths, h, d), the paths of a row together
            shares = self.shares(paths, horizon, seed).repeat(rows, 1, 1).to(features)
            copies = chosen_states(states, lambda field: field.repeat_interleave(paths, 0))
            many = features.repeat_interleave(paths, 0)
            coming = None if coming is None else coming.chosen(every.repeat_interleave(paths))
            drawn = self.ahead(many, copies, horizon, shares, coming)[0].cpu().double().numpy()
            drawn = drawn.reshape(rows, paths, horizon, self.size)
        return said.rows(drawn)

    @torch.no_grad()
    def forecast(self, batch: ForecasterBatch, horizon: int) -> Ahead:
        """How each row goes on, without paths that are drawn."""
        read = self.questions(self.seen(batch))
        outputs, states = self.read(read, beside=batch.beside)
        last = (beside(read.lengths, outputs.values) - 1).clamp_min(0)
        if self.direct is not None:
            return self._directly(batch, outputs.values, states, last, horizon)
        features, coming = self._last(batch, outputs.values, last, horizon)
        return self.recursively(features, states, horizon, coming)

    def _last(
        self, batch: ForecasterBatch, outputs: Tensor, last: Tensor, horizon: int, start: int = 0
    ) -> tuple[Tensor, Beside | None]:
        """The features (B, H) of the last step of each row, and what is known of the steps after it."""
        if not outputs.shape[1]:
            return outputs.new_zeros(len(last), outputs.shape[2]), None
        every = torch.arange(len(last), device=outputs.device)
        return outputs[every, last - start], self.coming(batch, every, last, horizon)

    def recursively(self, features: Tensor, states: States, horizon: int, coming: Beside | None) -> Ahead:
        """How each row goes on step by step, each fed back."""
        return Ahead(*self.ahead(features, states, horizon, beside=coming), None)

    def expected(self, ahead: Ahead) -> Tensor:
        """(B, h, d): the means of the steps ahead."""
        mean = self.density.mean(ahead.features)
        return mean if ahead.base is None else mean + ahead.base

    def said(self, ahead: Ahead) -> Said:
        """The steps ahead with log p, and with quantiles where none is fed back."""
        values, features, base = ahead
        own = values if base is None else values - base
        log_p = -self.density.loss(features, own, torch.ones_like(own[..., 0], dtype=torch.bool))
        fan = None if base is None or not self.has_quantiles else self.quantiles(features, base)
        return Said(values, self.expected(ahead), log_p, fan)

    def _directly(
        self, batch: ForecasterBatch, outputs: Tensor, states: States, last: Tensor, horizon: int, start: int = 0
    ) -> Ahead:
        """How each row goes on directly after its last step, from the features (B, T, H) of its steps from `start`."""
        assert self.direct is not None
        rows = torch.arange(len(outputs), device=outputs.device)
        values = batch.values.values.to(outputs.dtype)
        if not values.shape[1]:  # nothing is known of any row
            values, outputs = (each.new_zeros(len(each), 1, each.shape[2]) for each in (values, outputs))
        seen = self._last_seen(outputs, last, start)
        coming = self.coming(batch, rows, last, max(horizon, self.direct.horizon))
        recent = recent_values(values, last.unsqueeze(1), self.direct.lags).squeeze(1)
        return Ahead(*self.directly(seen, states, recent, horizon, coming))

    def _last_seen(self, outputs: Tensor, last: Tensor, start: int = 0) -> Seen:
        """What is seen from the last steps (B,) of rows with features (B, T, H) that begin with the step `start`."""
        values, counts = self.seen_from(outputs, last.unsqueeze(1), start)
        return Seen(values.squeeze(1), counts.squeeze(1))

    @torch.no_grad()
    def looked(self, batch: ForecasterBatch) -> list[NDArray[np.float64]]:
        """(K, n) of each row: how much each step ahead looked at each of the last n steps that are known."""
        assert self.direct is not None
        outputs, _ = self.read(self.seen(batch), beside=batch.beside)
        last = (beside(batch.values.lengths, outputs.values) - 1).clamp_min(0)
        seen = self._last_seen(outputs.values, last)
        coming = self.coming(batch, torch.arange(len(last), device=last.device), last, self.direct.horizon)
        weights = self.direct.looked(seen, self._known_ahead(coming))
        assert weights is not None, "its steps ahead look at the past"
        found = weights.cpu().double().numpy()
        return [each[:, each.shape[1] - count :] for each, count in zip(found, seen.counts.tolist(), strict=True)]


def chosen_states(states: States, choose: Callable[[Tensor], Tensor]) -> States:
    return tuple(tuple(type(state)(*(choose(field) for field in state)) for state in layer) for layer in states)
