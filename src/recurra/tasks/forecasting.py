"""Forecasting: every step of a sequence of vectors from the steps before it, and the steps that will follow."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.config.forcing import Forcing
from recurra.config.forecasting import COUNTS, POINTS, POSITIVE, WITHOUT_LOG_P, ForecastingDecoding
from recurra.config.frequency import IRREGULAR
from recurra.config.in_words import cell_in_words, layers_in_words, output_in_words
from recurra.data.batches import Batches, in_order_of_length
from recurra.data.files import extension
from recurra.data.normal import Normal
from recurra.data.origins import COUNT, Origins
from recurra.data.store import Encoded, Rows
from recurra.data.unit import Unit
from recurra.data.windows import Windows
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.metrics.conformal import Calibration, conformal_scores
from recurra.metrics.forecast_errors import LEVELS, naive_errors
from recurra.metrics.forecasts import came_true, origins_of, simple_rules
from recurra.metrics.theta import theta_of
from recurra.opening import read_file
from recurra.reading.asked import read_by
from recurra.reading.covariates import Widths, check_ahead, encoded, widths
from recurra.reading.facts import Facts, FactsCounted, Manner, facts_in_words
from recurra.reading.history import continued
from recurra.reading.outlook import with_outlook
from recurra.reading.samples import spread, windows
from recurra.reading.schema import Schema
from recurra.reading.series import SHORTEST, Steps, compared, sequences, with_columns
from recurra.reading.steps_asked import asked_steps, sent_steps
from recurra.scoring.counted import Counted
from recurra.scoring.forecast_scores import Measures, frame_scores, value_scores
from recurra.settings import Part, SettingError, name_of
from recurra.tasks.task import START, AnswerKind, Asked, Loss, Moment, Prediction, Purpose, Recurring, Task, Viewer
from recurra.views.forecast_table import forecast_csv
from recurra.views.purpose import SERIES
from recurra.views.table import Table
from recurra.views.view import View
from recurra.views.viewer import FORECAST, LOOKED

if TYPE_CHECKING:
    from recurra.analysis import forecasts
    from recurra.analysis.anatomy import Anatomy
    from recurra.analysis.backtests import Backtest
    from recurra.analysis.exposure import Exposure
    from recurra.analysis.gates import Stack
    from recurra.models.forecaster import Forecast, Forecaster, ForecasterBatch, Review
    from recurra.sequences.stream import Stream

TOKENS = 8192
"""Steps that are reviewed together."""

Output: TypeAlias = "Forecast | Review"


NAMED = 8
"""Values that are listed in a notice; of more, the first and the last."""

FIT_FOR = dict.fromkeys(COUNTS, "counts (whole numbers from 0)") | dict.fromkeys(POSITIVE, "values above 0")
"""Outputs that not every value suits, and which do."""

SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of an answer."""

SAMPLED = 60
"""Steps of a sample that is kept with what is known beside them."""

CALIBRATION = "calibration.json"
"""The file of a run with what corrects its intervals."""

POINT, PATHS = "point", "paths"
"""Of forecasts without an interval, and of the 90 % interval of sampled paths."""

RECENT, SEASONS = 100, 14
"""Steps and seasons before an origin, at least, that tell which errors are usual."""

CALIBRATED = 500
"""Origins, about, from which paths are drawn to correct their intervals."""

ROLLED, ROLLED_PATHS = 20_000, 100
"""Steps that a backtest forecasts, up to which it draws paths unasked; how many from each origin."""

BEFORE = 60
"""Steps that a picture of a backtest shows before its first origin."""

NO_FILE = "input"
"""Where a series is from that is asked about without a file."""


class Forecasting(Task[Steps, "ForecasterBatch", Output]):
    """Sequences of vectors: series of measurements, piano rolls."""

    Settings: ClassVar[type] = ForecastingSettings
    name: ClassVar[str] = "forecasting"

    def __init__(
        self,
        settings: ForecastingSettings,
        scale: Normal,
        *,
        is_binary: bool,
        facts: Facts | None = None,
        calibrations: Mapping[str, Calibration] | None = None,
    ) -> None:
        self.settings = settings
        self.scale = scale  # of the values, or of their changes, over all series
        self.facts = facts or Facts()
        self.data = settings.data  # with the frequency of the training data; a run of an earlier version counts rows
        if settings.data.frames is None:
            frequency = (self.facts.frequency or settings.data.frequency) if self.facts.counts else IRREGULAR
            self.data = dataclasses.replace(settings.data, frequency=frequency)
        self.is_binary = is_binary
        self.calibrations = calibrations or {}  # of forecasts without an interval, and of that of sampled paths
        self.is_direct = settings.model.is_at_once
        usual = "bernoulli" if is_binary else "quantiles" if self.is_direct else "gaussian"
        self.output: Part = settings.model.output or usual
        self.gives_coins = name_of(self.output) == "bernoulli"
        if self.gives_coins and not is_binary:
            raise SettingError(
                "model.output = 'bernoulli' is for values that are 0 or 1, but the training data has other "
                "values. Use 'gaussian' or 'squared_error'.",
                ("model", "output"),
            )
        self.has_quantiles = name_of(self.output) not in POINTS
        self.has_density = name_of(self.output) not in WITHOUT_LOG_P
        self.forcing = Forcing.of(settings.training.forcing)
        if settings.decoding.paths and not self.has_quantiles:
            raise SettingError(
                f"decoding.paths = {settings.decoding.paths} needs a distribution to sample from, which model.output "
                f"= 'squared_error' does not predict. Use 'gaussian', or decoding.paths = 0.",
                ("decoding", "paths"),
            )

    @functools.cached_property
    def reads_gaps(self) -> bool:
        """Whether the network is given which values were observed, and the time between steps. (torch)"""
        return reads_gaps_in(self.settings)

    @property
    def from_nothing(self) -> bool:
        """Whether the first step is predicted too: frames have a beginning, a series is cut out of time."""
        return self.settings.data.frames is not None

    @classmethod
    def resolved(cls, settings: ForecastingSettings) -> ForecastingSettings:
        data, evaluation = with_columns(settings.data, settings.data.files("train")[0]), settings.evaluation
        if evaluation.score is None and data.series is not None:
            # Series may have different levels: each error is measured by what is usual in its own.
            evaluation = dataclasses.replace(evaluation, score="mase")
        return with_outlook(dataclasses.replace(settings, data=data, evaluation=evaluation))

    @classmethod
    def encoding(cls, settings: ForecastingSettings) -> object:
        data = settings.data
        # Of what is known ahead, as many steps are kept as the horizon has.
        ahead = {"horizon": settings.decoding.horizon} if data.has_future else {}
        way = "backward" if settings.model.direction == "backward" else ahead or None
        return [way, "gaps"] if reads_gaps_in(settings) else way

    @classmethod
    def prepared(cls, settings: ForecastingSettings) -> Self:
        data = settings.data
        facts = FactsCounted(data, Manner.of(settings))
        counted = Normal.counted()
        is_binary = not data.difference
        is_empty, longest = True, 0
        least, most = np.array(np.inf), np.array(-np.inf)  # of each column
        output = None if settings.model.output is None else name_of(settings.model.output)
        for steps in map(in_order_of(settings), sequences(data.files("train"), data)):
            is_empty, longest = False, max(longest, len(steps))
            if (odd := unfit(steps.values[steps.known], output)) is not None:
                raise SettingError(
                    f"model.output = '{output}' is for {FIT_FOR[str(output)]}, but {steps.place} contains {odd:g}. Use "
                    f"'gaussian', 'student_t' or 'quantiles'.",
                    ("model", "output"),
                )
            if data.log:
                check_not_negative(steps.values, steps.place)
            if data.frames is None:
                facts.add(steps)
            values = np.where(steps.known, steps.values, np.nan)
            is_binary = is_binary and bool(np.isin(steps.values[steps.known], (0, 1)).all())
            counted.add(np.diff(values, axis=0) if data.difference else values, steps.place)
            if len(values):
                least = np.fmin(least, np.fmin.reduce(values))
                most = np.fmax(most, np.fmax.reduce(values))
        if is_empty:
            raise DataError(f"{', '.join(data.files('train'))} contains no sequences to train on.")
        scale = counted.finished()
        if data.values and not is_binary and longest >= SHORTEST:
            for column, low, high in zip(data.predicted, least, most, strict=True):
                if low == high:
                    raise DataError(
                        f"the column '{column}' of {', '.join(data.files('train'))} is constant ({low:g}), so there "
                        f"is nothing to predict. Leave it out of data.values."
                    )
        if output in FIT_FOR:  # what is not shifted stays above 0
            scale = Normal(np.zeros_like(scale.mean), np.where(scale.mean > 0, scale.mean, 1.0))
        if is_binary:  # notes stay 0 and 1, however rare
            scale = Normal(np.zeros_like(scale.mean), np.ones_like(scale.spread))
        if data.frames is None and data.shares is not None:  # a file goes on with all that is there, held out or not
            for steps in sequences([data.train] if isinstance(data.train, str) else data.train, data):
                facts.end(steps)
        learned = None if data.frames is not None else facts.finished(scale, is_binary=is_binary or output in FIT_FOR)
        return cls(settings, scale, is_binary=is_binary, facts=learned)

    def save(self, folder: Path) -> None:
        known = {"values": self.scale.to_json()}
        (folder / "scales.json").write_text(json.dumps(known), "utf-8")
        (folder / "kind.json").write_text(json.dumps({"is_binary": self.is_binary}), "utf-8")
        self.facts.save(folder)
        if self.calibrations:
            found = {name: each.to_json() for name, each in self.calibrations.items()}
            (folder / CALIBRATION).write_text(json.dumps(found), "utf-8")

    @classmethod
    def load(cls, settings: ForecastingSettings, folder: Path) -> Self:
        try:
            scale = Normal.load_all(folder / "scales.json")["values"]
            is_binary = bool(json.loads(read_file(folder / "kind.json"))["is_binary"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointError(
                f"{folder / 'kind.json'} cannot be read ({error}): the run folder is incomplete."
            ) from error
        path, calibrations = folder / CALIBRATION, dict[str, Calibration]()
        if path.exists():  # earlier versions wrote none
            try:
                known = json.loads(read_file(path))
                calibrations = {str(name): Calibration.from_json(each) for name, each in known.items()}
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise CheckpointError(f"{path} cannot be read ({error}): the run folder is damaged.") from error
        return cls(settings, scale, is_binary=is_binary, facts=Facts.load(folder), calibrations=calibrations)

    def with_settings(self, settings: ForecastingSettings, folder: Path) -> Self:
        known = {"facts": self.facts, "calibrations": self.calibrations}
        return type(self)(settings, self.scale, is_binary=self.is_binary, **known)  # type: ignore[arg-type]

    @property
    def is_backward(self) -> bool:
        """Whether a sequence is read from its end; the steps of an example are in the order in which they are read."""
        backward: bool = self.settings.model.direction == "backward"
        return backward

    def read(self, files: Sequence[str | Path]) -> Iterator[Steps]:
        for steps in self._continued(sequences(files, self.data)):
            scored = dataclasses.replace(steps, origin=max(*self._origins, steps.lead))
            yield in_order_of(self.settings)(scored)

    @property
    def _origins(self) -> tuple[int, int]:
        """Steps that must be known before a forecast is scored, for either reason."""
        return self.settings.evaluation.context, self.settings.evaluation.season or 0

    def _continued(self, series: Iterable[Steps]) -> Iterator[Steps]:
        """Series of a table with the steps before them, where these are known."""
        data = self.data
        if data.frames is not None or self.is_backward:
            return iter(series)
        return continued(series, self.facts.ends, longest=data.window or 0)

    def preceded_by(self, file: str | Path) -> Self:
        data = self.data
        if data.frames is not None or self.is_backward or data.time is None:
            raise ConfigError("--history needs series with times that are read forward, which this run does not have.")
        by = read_by(file, data) or data
        series = continued(sequences([file], by), self.facts.ends, longest=data.window or 0)
        found = copy.copy(self)
        found.facts = dataclasses.replace(self.facts, ends={steps.name: steps for steps in series}, source=str(file))
        return found

    def preceded(self, examples: Sequence[Steps]) -> str | None:
        own = [steps for steps in examples if steps.preceding]
        if not own:
            return None
        most = max(steps.preceding for steps in own)
        of = "the series" if len(examples) == 1 else f"{len(own):,} of {len(examples):,} series"
        source = f"'{self.facts.source}'" if self.facts.source is not None else "the training data"
        go = "goes" if len(own) == 1 else "go"
        return f"{of} {go} on with {source}: up to {most:,} steps before are read and not scored"

    def questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Steps]:
        for steps in self._continued(self._questions(file, lines)):
            if not len(steps) and steps.later is not None:
                raise DataError(
                    f"{steps.place}: there is no value of the series '{steps.name}' to start from: give some steps of "
                    "it, or the file before it by --history FILE."
                )
            yield in_order_of(self.settings)(steps)

    def _questions(self, file: str | Path | None, lines: Iterable[str | Sequence[str]]) -> Iterator[Steps]:
        if file is not None and (by := read_by(file, self.data)) is not None:
            yield from sequences([file], by)
            return
        for number, line in enumerate(lines, 1):
            place = f"{file or NO_FILE}:{number}"
            try:
                given = json.loads(line or "[]") if isinstance(line, str) else line
            except (json.JSONDecodeError, RecursionError) as error:
                raise DataError(
                    f"{place}: each line must be a JSON list of steps, each a number or a list of numbers."
                ) from error
            yield asked_steps(given, self.data, number, place)

    def schema(self) -> Schema:
        data = self.settings.data
        return Schema("series", data.predicted, series=data.series or "")

    def sent(self, example: Steps) -> object:
        return sent_steps(in_order_of(self.settings)(example), self.data)

    def samples(self, examples: Sequence[Steps], count: int) -> list[object]:
        examples = [in_order_of(self.settings)(example) for example in examples[:count]]
        if not self.widths.are_any:
            return list(spread([cut for example in examples for cut in windows(example.values, count)], count))
        horizon = self.settings.decoding.horizon
        ends = [(steps, len(steps) - horizon) for steps in examples if len(steps) > horizon + 1]
        return [sent_steps(steps.cut(max(0, end - SAMPLED), end), self.data) for steps, end in ends][:count]

    @property
    def widths(self) -> Widths:
        """How many numbers are read beside the values."""
        return widths(self.data, self.facts)

    def unit_of(self, example: Steps) -> Unit:
        """How the values of one series are scaled."""
        return self.facts.unit(example, self.scale, Manner.of(self.settings))

    def encode(self, example: Steps) -> Encoded:
        size = len(self.scale.mean)
        values, known = example.values, example.known
        if len(values) == 0:
            values, known = np.zeros((0, size)), np.zeros((0, size), bool)
        if values.shape[1] != size:
            raise DataError(f"{example.place}: found {values.shape[1]} values per step, but the model expects {size}.")
        if self.gives_coins and not np.isin(values[~np.isnan(values)], (0, 1)).all():
            odd = values[~np.isin(values, (0, 1)) & ~np.isnan(values)][0]
            raise DataError(f"{example.place}: found {odd:g}, but the model accepts only the values 0 and 1.")
        if (odd := unfit(values, name_of(self.output))) is not None:
            fit = FIT_FOR[name_of(self.output)]
            raise DataError(
                f"{example.place}: found {odd:g}, but the model accepts only {fit} (model.output = "
                f"'{name_of(self.output)}')."
            )
        if self.settings.data.log:
            check_not_negative(values, example.place)
        found = {
            # What was never known is the mean.
            "values": np.nan_to_num(self.unit_of(example).scaled(values)).astype(np.float32),
            "known": compared(known, difference=self.settings.data.difference),
            "place": np.array([example.file, example.line], np.int64),
            **encoded(example, self.data, self.facts, self.settings.decoding.horizon),
        }
        return found | {"gaps": self.gaps(example, known)} if self.reads_gaps else found

    def gaps(self, example: Steps, known: NDArray[np.bool_]) -> NDArray[np.float32]:
        """(T, d + 1): of each step which values were observed, and the time since the step before, 0 at the first."""
        observed = compared(example.measured if len(known) else known, difference=self.settings.data.difference)
        elapsed = np.ones(len(observed))
        moments = None if example.frequency is not None else moments_of(example)
        if moments is not None:  # else the steps are equal
            elapsed[1:] = np.abs(np.diff(moments)) / self.facts.step
        elapsed[:1] = 0.0
        return np.column_stack([observed, elapsed]).astype(np.float32)

    def left_out(self, row: Encoded) -> str | None:
        if self.from_nothing or len(row["values"]) >= SHORTEST:
            return None
        return f"a series needs at least {SHORTEST} steps to learn from"

    def lengths(self, rows: Any) -> NDArray[np.int64]:
        found: NDArray[np.int64] = rows.lengths("values")
        return found

    def noticed_in_training(self, rows: Any) -> str | None:
        """What the columns of a table are taken for."""
        data = self.settings.data
        if data.frames is not None or not data.values:
            return None
        many = f"{data.values[0]} to {data.values[-1]}" if len(data.values) > NAMED else ", ".join(data.values)
        time = f"time: {data.time}" if data.time is not None else "no column is the time, the rows are in order"
        series = f"; series: {data.series}" if data.series is not None else ""
        if data.layout == "wide":
            series = "; each column is a series"
        season = f"; a season has {data.season} steps" if data.season is not None and data.season > 1 else ""
        log = "; their logarithms are predicted" if data.log else ""
        return f"{time}{series}; values: {many}{log}{facts_in_words(data, self.facts)}{season}"

    def held_out(self, part: Rows, parts: Sequence[Any]) -> str:
        if self.settings.data.frames is not None:
            return super().held_out(part, parts).replace("examples", "whole sequences")
        total = int(self.lengths(parts[0]).sum()) + sum(map(self._steps_held_out, parts[1:]))
        series = f"each of {len(part):,} series" if len(part) > 1 else "the series"
        return f"{self._steps_held_out(part):,} of {total:,} steps, the end of {series}"

    def _steps_held_out(self, rows: Rows) -> int:
        """Steps of series without those that only lead up to them; a change is known one step later than a value."""
        leads = [int((row["known"][::-1] if self.is_backward else row["known"]).any(1).argmax()) for row in rows]
        return int(rows.lengths("values").sum()) - sum(
            lead - (lead > 0 and self.settings.data.difference) for lead in leads
        )

    def windows(self, rows: Any) -> Windows | Origins | None:
        """The parts of rows that are read together in training; None: whole rows."""
        size, overlap = self.settings.data.window, self.settings.data.overlap
        if self.is_direct:
            model, season = self.settings.model, self.settings.data.season
            assert size is not None
            assert model.horizon is not None
            assert season is not None
            return Origins(self.lengths(rows), count=COUNT, lead=size, horizon=model.horizon, earliest=season - 1)
        if size is None:
            return None
        return Windows(self.lengths(rows), size=size, overlap=size // 2 if overlap is None else overlap)

    def batches(self, rows: Any, epoch: int) -> Batches:
        windows, training = self.windows(rows), self.settings.training
        if windows is None:
            return super().batches(rows, epoch)
        size = training.batch_size
        tokens = None if size is not None else training.batch_tokens
        if isinstance(windows, Origins):  # whose elements are the steps from which forecasts start
            drawn = windows.drawn(self.settings.data.origins, seed=training.seed, epoch=epoch)
            return Batches(windows.counts, tokens=tokens, rows=size, seed=training.seed, epoch=epoch, of=drawn)
        return Batches(windows.lengths, tokens=tokens, rows=size, seed=training.seed, epoch=epoch)

    def chosen(self, store: Any, numbers: NDArray[np.int64]) -> Sequence[Encoded]:
        windows = self.windows(store)
        if windows is None:
            return super().chosen(store, numbers)
        begins = np.cumsum(self.lengths(store)) - self.lengths(store)
        has, horizon = self.widths, self.settings.decoding.horizon
        found: list[Encoded] = []
        for row, start, end, *origin in (windows[int(number)] for number in numbers):
            first, last = int(begins[row]) + start, int(begins[row]) + end
            values, known = (store.span(name, first, last) for name in ("values", "known"))
            if self.from_nothing and start:  # a frame in the middle does not follow on silence
                known = np.concatenate([np.zeros_like(known[:1]), known[1:]])
            some = {"values": values, "known": known, "place": store.span("place", 2 * row, 2 * row + 2)}
            if has.past:
                some["past"] = store.span("past", first, last)
            if has.future:  # of each row as many more as the horizon has steps
                ahead = row * horizon
                some["future"] = store.span("future", first + ahead, last + ahead + horizon)
            for name, width in (("static_numbers", has.static), ("static_names", len(has.categories))):
                if width:
                    some[name] = store.span(name, width * row, width * (row + 1))
            if self.reads_gaps:
                some["gaps"] = store.span("gaps", first, last)
            if origin:
                some["origin"] = np.array(origin, np.int64)
            found.append(some)
        return found

    def batch(self, rows: Sequence[Encoded]) -> ForecasterBatch:
        from recurra.models.forecaster import batched

        return batched(rows)

    @property
    def draws_in_batch(self) -> bool:
        return False

    def build(self) -> Forecaster:
        from recurra.encoders.covariates import Covariates
        from recurra.models.forecaster import Forecaster

        model = Forecaster(
            self.settings.model,
            output=self.output,
            size=len(self.scale.mean),
            from_nothing=self.from_nothing,
            covariates=Covariates(**self.widths._asdict()) if self.widths.are_any else None,
            season=self.settings.data.season or 1,
        )
        model.density.measured_in(self.scale.spread.tolist())
        return model

    def loss(self, model: Any, batch: ForecasterBatch, moment: Moment = START) -> Loss:
        from recurra.models.forcing import Forced

        forced = Forced.at(self.forcing, moment.step, moment.varying)
        total, count = model.loss(batch, forced=forced)
        return Loss(total, count, logged=self.varying(moment.step))

    def varying(self, step: int) -> Mapping[str, float]:
        return self.forcing.varying(step)

    def recurring(self, batch: ForecasterBatch) -> Recurring | None:
        from recurra.models.forecaster import recurring_series

        if self.is_direct:
            return Recurring(recurring_series(batch), batch.starts)
        predicted = batch.values.lengths if self.from_nothing else (batch.values.lengths - 1).clamp_min(0)
        return Recurring(recurring_series(batch), int(predicted.sum()))

    def predict(self, model: Any, batch: ForecasterBatch, *, detail: bool = False) -> list[Output]:
        decoding = self.settings.decoding
        if decoding.coverage is not None and not self.gives_coins:
            self._check_calibrated(decoding.coverage)
        found: list[Output] = model.predict(batch, horizon=decoding.horizon, paths=decoding.paths, seed=decoding.seed)
        return found

    def outputs(self, model: Any, rows: Sequence[Encoded], *, device: str) -> list[Output]:
        return self._reviews(model, rows, self._places(rows), paths=self.settings.evaluation.paths)

    def _places(self, rows: Sequence[Encoded], *, thinned: int = 1) -> list[NDArray[np.int64]]:
        """From where the steps of each row are forecast to be scored, or from every so-many-th of these places."""
        stride = self.settings.evaluation.stride * thinned
        found = [origins_of(len(row["values"]), first=self._first_scored(row), stride=stride) for row in rows]
        return [each[:0] for each in found] if self.gives_coins else found

    def _reviews(
        self, model: Any, rows: Sequence[Encoded], origins: Sequence[NDArray[np.int64]], *, paths: int
    ) -> list[Any]:
        from recurra.padding import fitted

        found: list[Any] = [None] * len(rows)
        for numbers in in_order_of_length(self.lengths(Rows(rows)), tokens=TOKENS):
            reviews = model.review(
                fitted(self.batch([rows[number] for number in numbers]), model),
                [origins[number] for number in numbers],
                horizon=self.settings.decoding.horizon,
                quantiles=not self.gives_coins and self.has_quantiles,
                paths=paths,
                seed=self.settings.decoding.seed,
                summed=self.settings.data.difference,
            )
            for number, review in zip(numbers, reviews, strict=True):
                found[number] = review
        return found

    # Backtests

    def origins_back(self, files: Sequence[str | Path], *, windows: int, step: int) -> list[int]:
        horizon = self.settings.decoding.horizon
        back = [horizon + (windows - 1 - number) * step for number in range(windows)]
        self._examples_to_roll(files, back)
        return back

    def rolling(
        self,
        model: Any,
        files: Sequence[str | Path],
        *,
        windows: int,
        step: int,
        back: Sequence[int] | None = None,
    ) -> Backtest:
        from recurra.analysis.backtests import MODEL, Backtest, Rolling

        horizon, season = self.settings.decoding.horizon, self.settings.season
        back = self.origins_back(files, windows=windows, step=step) if back is None else back
        examples = self._examples_to_roll(files, back)
        origins = [len(example) - np.array(back) for example in examples]
        paths, decoding = self.settings.evaluation.paths or self.settings.decoding.paths, self.settings.decoding
        if not paths and self.has_quantiles and len(examples) * len(back) * horizon <= ROLLED:
            paths = ROLLED_PATHS
        reviews = self._reviews(model, [self.encode(example) for example in examples], origins, paths=paths)
        histories = [
            column[:o] for e, places in zip(examples, origins, strict=True) for o in places for column in e.values.T
        ]
        smooth = iter(
            theta_of(histories, horizon, max(1, season)).reshape(-1, len(self.scale.mean), horizon).swapaxes(1, 2)
        )
        found = []
        for example, review in zip(examples, reviews, strict=True):
            whole, places, unit = example.values, review.origins, self.unit_of(example)
            moments = self.moments(example)
            gold = came_true(np.where(example.known, whole, np.nan), places, horizon)
            said = {MODEL: unit.ahead(review.ahead, whole[places - 1])} | simple_rules(whole, places, horizon, season)
            scales, squares = (naive_errors(whole, places, season, power=power) for power in (1, 2))
            fan = None if review.fan is None else unit.fan(review.fan, whole[places - 1])
            ends = self.calibrated_intervals(example, review)
            if ends is None and fan is not None:
                ends = fan[:, :, 0], fan[:, :, -1]
            for number, origin in enumerate(places.tolist()):
                found.append(
                    Rolling(
                        example.name,
                        number + 1,
                        origin,
                        moments[origin : origin + horizon],
                        gold[number],
                        {name: each[number] for name, each in said.items()} | {"theta": next(smooth)},
                        scales[number],
                        np.sqrt(squares[number]),
                        None if fan is None else fan[number],
                        None if ends is None else (ends[0][number], ends[1][number]),
                        whole[max(0, origin - BEFORE) : origin],
                    )
                )
        is_corrected = decoding.coverage is not None and bool(self.calibrations)
        return Backtest(found, self._columns, decoding.coverage if is_corrected else 0.9)

    @property
    def _columns(self) -> list[str]:
        """The names of the values of a step."""
        names = self.data.values or []
        is_wide = self.data.layout == "wide"  # each column is a series of its own
        return list(names) if names and not is_wide else [str(number + 1) for number in range(len(self.scale.mean))]

    def moments(self, example: Steps) -> list[str]:
        """When each step is: its time, or its number from 1."""
        times = example.times if example.times is not None else example.numbers
        return self.steps(example) if times is None else example.written(times)

    def _examples_to_roll(self, files: Sequence[str | Path], back: Sequence[int]) -> list[Steps]:
        """The series of files with all their steps, if they are long enough."""
        if self.gives_coins or self.from_nothing or self.is_backward:
            what = "zeros and ones" if self.gives_coins else "frames" if self.from_nothing else "what was before"
            raise ConfigError(
                f"recurra backtest is for series of real values out of a table, but this run predicts {what}."
            )
        examples = list(sequences(files, dataclasses.replace(self.data, drop_last=0)))
        before = max(2, self.settings.season)
        needed = before + max(back)
        short = [example for example in examples if len(example) < needed]
        if short:
            first = short[0]
            named = f"the series '{first.name}'" if first.name else "the series"
            others = f" ({len(short):,} of {len(examples):,} series are too short)" if len(short) > 1 else ""
            raise DataError(
                f"{first.place}: {named} has {len(first)} steps, but the first of {len(back)} windows begins "
                f"{max(back)} steps before its end and needs at least {before} steps before it: "
                f"{needed - len(first)} steps are missing{others}. Use fewer --windows, or a smaller --step or "
                f"--horizon."
            )
        return examples

    def anomalies(self, model: Any, files: Sequence[str | Path]) -> Table:
        """A row for each value that is known and predicted: what was expected, −log p and the tail beyond it."""
        if not self.has_quantiles:
            raise ConfigError(
                f"--anomalies needs a distribution, which model.output = '{name_of(self.output)}' does not predict. "
                f"Train with model.output = 'gaussian' or 'student_t'."
            )
        from recurra.padding import fitted

        names = self._columns
        has_sizes = self.measures.has_sizes
        examples = list(self.read(files))
        of_examples = [self.encode(example) for example in examples]
        seen: list[Any] = [None] * len(examples)
        for numbers in in_order_of_length(self.lengths(Rows(of_examples)), tokens=TOKENS):
            batch = fitted(self.batch([of_examples[number] for number in numbers]), model)
            for number, found in zip(numbers, model.observed(batch), strict=True):
                seen[number] = found
        rows: list[list[object]] = []
        for example, found in zip(examples, seen, strict=True):
            is_scored = compared(example.known, difference=self.settings.data.difference) & ~np.isnan(found.tails)
            before = np.concatenate([example.values[:1], example.values[:-1]])
            unit, moments = self.unit_of(example), self.moments(example)
            said = [unit.ahead(each[:, None], before)[:, 0] for each in (found.expected, *found.bounds)]
            sizes = unit.log_size(example.values) if has_sizes else np.zeros_like(example.values)
            for t, j in np.argwhere(is_scored).tolist():
                expected = [float(each[t, j]) for each in said]
                surprise = [float(found.costs[t, j] + sizes[t, j])] if self.has_density else []
                moment = [example.name, moments[t], names[j], float(example.values[t, j])]
                rows.append([*moment, *expected, *surprise, float(found.tails[t, j])])
        head = ["series", "time", "column", "value", "expected", "low", "high"]
        return Table([*head, *(["surprise"] if self.has_density else []), "tail"], rows)

    # Streams

    def stream(self, model: Any, state: bytes | None = None) -> Stream:
        if self.is_backward:
            raise ConfigError("a stream is read forward, but this run reads series from their end.")
        from recurra.sequences.stream import Stream

        return Stream(self, model, state)

    def asked(self, row: Any, *, is_first: bool) -> Steps:
        """The steps of a row that a stream is given; before the first, those of training that it goes on with."""
        [steps] = self.questions(None, [row]) if is_first else self._questions(None, [row])
        return steps

    def with_unit(self, name: str, unit: Unit) -> Self:
        """The task that scales the series of a name by a unit, whatever else is known of it."""
        if not self.facts.by_series:
            return self
        found = copy.copy(self)
        found.facts = dataclasses.replace(
            self.facts,
            names={name: 0},
            means=unit.scale.mean[None],
            spreads=unit.scale.spread[None],
            floors=None if unit.floor is None else unit.floor[None],
            errors=None,
            ends={},
        )
        return found

    @property
    def steps_remembered(self) -> int:
        """The last steps of a series that a forecast is made from, beside the states of the network."""
        season = self.settings.season
        return max(self.settings.model.lags or 0, max(RECENT, SEASONS * season) + season) + 1

    # Intervals that hold as often as they say

    def calibrated(
        self, model: Any, examples: Sequence[Steps], rows: Sequence[Encoded], outputs: Sequence[Any]
    ) -> Self:
        """The task that knows the errors of a trained model on examples that it has not seen."""
        if self.gives_coins or not any(len(review.origins) for review in outputs):
            return self
        found = {POINT: self._calibration(examples, outputs, has_fan=False)}
        decoding = self.settings.decoding
        if self.has_quantiles and (self.is_direct or decoding.paths or self.settings.evaluation.paths):
            if outputs[0].fan is None:  # from some of the origins, for it takes long
                some = self._places(rows, thinned=max(1, sum(len(each.origins) for each in outputs) // CALIBRATED))
                outputs = self._reviews(model, rows, some, paths=decoding.paths)
            found[PATHS] = self._calibration(examples, outputs, has_fan=True)
        return type(self)(self.settings, self.scale, is_binary=self.is_binary, facts=self.facts, calibrations=found)

    def _calibration(self, examples: Sequence[Steps], reviews: Sequence[Any], *, has_fan: bool) -> Calibration:
        scores = []
        for example, review in zip(examples, reviews, strict=True):
            if len(review.origins):
                gold = np.where(example.known, example.values, np.nan)
                low, high = self._ends(example, review, has_fan=has_fan)
                came = came_true(gold, review.origins, self.settings.decoding.horizon)
                usual = self._usual_errors(low, high, example.values, review.origins)
                scores.append(conformal_scores(low, high, came, usual))
        return Calibration.of(np.concatenate(scores))

    def _ends(self, example: Steps, review: Any, *, has_fan: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(O, h, d) each: the ends of the 90 % interval of sampled paths; without them both are the forecast."""
        last = example.values[review.origins - 1]
        if not has_fan:
            return (said := self.unit_of(example).ahead(review.ahead, last)), said
        fan = self.unit_of(example).fan(review.fan, last)
        return fan[:, :, 0], fan[:, :, -1]

    def _usual_errors(
        self,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        values: NDArray[np.float64],
        origins: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """(O, h, d): in what errors are measured: the width of the interval, or, without one, what was usual lately."""
        width = high - low
        if not len(values):
            return np.where(width > 0, width, self.scale.spread)
        season = self.settings.season
        lately = naive_errors(values, origins, season, recent=max(RECENT, SEASONS * season))[:, None]
        return np.where(width > 0, width, np.where(np.isnan(lately), self.scale.spread, lately))

    def calibrated_intervals(
        self, example: Steps, review: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """(O, h, d) each: the ends of intervals that hold `decoding.coverage` of the values; None where unknown."""
        coverage = self.settings.decoding.coverage
        has_fan = review.fan is not None and PATHS in self.calibrations
        if coverage is None or not self.calibrations:
            return None
        low, high = self._ends(example, review, has_fan=has_fan)
        return self._widened(low, high, example.values, review.origins, PATHS if has_fan else POINT)

    def _widened(
        self,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        values: NDArray[np.float64],
        origins: NDArray[np.int64],
        which: str,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        coverage = self.settings.decoding.coverage
        assert coverage is not None
        self._check_calibrated(coverage)
        horizon = self.settings.decoding.horizon
        more = self._usual_errors(low, high, values, origins) * self.calibrations[which].at(coverage)[:horizon]
        low, high = low - more, high + more
        middle = (low + high) / 2  # ends that were drawn in too far meet there
        low, high = np.minimum(low, middle), np.maximum(high, middle)
        is_positive = name_of(self.output) in FIT_FOR or self.settings.data.log
        return (np.maximum(low, 0.0), np.maximum(high, 0.0)) if is_positive else (low, high)

    def _check_calibrated(self, coverage: float) -> None:
        decoding = self.settings.decoding
        if not self.calibrations:
            if decoding.paths or (self.is_direct and self.has_quantiles and coverage <= LEVELS[-1] - LEVELS[0]):
                return  # the quantiles of the paths, or of the model, themselves
            raise SettingError(
                f"decoding.coverage = {coverage:g} needs the errors on validation data, but this run was trained "
                f"without any. Train with --valid, or take the interval of sampled paths: decoding.paths = 100.",
                ("decoding", "coverage"),
            )
        known = min(each.horizon for each in self.calibrations.values())
        if decoding.horizon > known:
            raise SettingError(
                f"decoding.coverage = {coverage:g}: intervals are known for {known} steps ahead, but decoding.horizon "
                f"is {decoding.horizon}. Train with this horizon, or leave decoding.coverage out.",
                ("decoding", "coverage"),
            )

    def free_running(self, model: Any, rows: Sequence[Encoded], *, device: str) -> Exposure:
        """From each origin that is scored on, as far as the horizon; of frames, from each horizon to the next."""
        if self.is_direct:
            raise ConfigError(
                "--free-running compares forecasts that are fed back with right values, but model.ahead = "
                f"'{self.settings.model.ahead}' predicts all steps of the horizon at once and feeds nothing back. "
                "Leave it out."
            )
        from recurra.analysis.exposure import Exposed, Exposure
        from recurra.padding import fitted

        horizon, items = self.settings.decoding.horizon, list[Exposed]()
        stride = horizon if self.gives_coins else self.settings.evaluation.stride
        for numbers in in_order_of_length(self.lengths(Rows(rows)), tokens=TOKENS):
            chosen = [rows[number] for number in numbers]
            origins = [origins_of(len(row["values"]), first=self._first_scored(row), stride=stride) for row in chosen]
            items += model.run_free(fitted(self.batch(chosen), model), origins, horizon=horizon)
        return Exposure.of(items, "nll" if self.gives_coins else "error")

    def _first_scored(self, row: Encoded) -> int:
        """How many steps of a series must be known before a forecast is scored."""
        first = max(self._origins)
        # Before the first known step are those that only lead up to what was held out.
        return max(first, int(row["known"].any(1).argmax()) if len(row["known"]) else 0)

    def combined(self, example: Steps, outputs: Sequence[Any]) -> Any:
        from recurra.models.forecaster import Forecast, combined_forecast, combined_review

        if isinstance(outputs[0], Forecast):
            return combined_forecast(outputs, coins=self.gives_coins)
        row = self.encode(example)
        values, known = row["values"].astype(np.float64), row["known"]
        return combined_review(
            outputs, values, known, has_density=self.has_density, is_squared=name_of(self.output) in POINTS
        )

    def units(self) -> object:
        kind = self.is_binary, self.has_density, self.gives_coins
        scales = self.scale.to_json(), self.facts.means.tolist(), self.facts.spreads.tolist(), dict(self.facts.names)
        return scales, self.settings.data.difference, self.from_nothing, self.is_backward, kind

    @property
    def unused_in_scores(self) -> Collection[str]:
        # The mean is fed back; what is drawn is scored only with evaluation.paths.
        return ("paths",) if self.settings.evaluation.paths else ("paths", "seed")

    def most_written(self, lengths: Sequence[int]) -> float:
        decoding = self.settings.decoding
        return max(1, decoding.paths) * decoding.horizon * len(lengths)

    def answer(self, example: Steps, output: Any) -> Prediction:
        detail: dict[str, Any] = {"series": example.name} if example.name else {}
        if len(example) == 0 and not self.from_nothing:
            return Prediction("", "", 0.0, example.line, {**detail, "values": []})
        last = example.values[-1] if len(example) else np.zeros(len(self.scale.mean))
        check_ahead(example, self.data, self.settings.decoding.horizon)
        unit = self.unit_of(example)
        values = said = unit.ahead(output.values, last)
        coverage, which = self.settings.decoding.coverage, POINT
        ends: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        if output.paths is not None:
            paths = unit.ahead(output.paths, last)
            outside = 0.1 if coverage is None or self.calibrations else 1 - coverage
            low, values, high = np.quantile(paths, (outside / 2, 0.5, 1 - outside / 2), axis=0)
            ends, which = (low, high), PATHS
        elif output.fan is not None:
            fan = unit.fan(output.fan, last)  # (h, L, d)
            outside = 0.1 if coverage is None or self.calibrations else 1 - coverage
            ends, which = (_level(fan, outside / 2), _level(fan, 1 - outside / 2)), PATHS
            levels = self.quantiles(example, output)
            detail["quantiles"] = {f"{level:g}": each.tolist() for level, each in levels.items()}
        if output.paths is not None:
            if self.gives_coins:
                values = (values > 0.5).astype(float)
                detail["probabilities"] = paths.mean(0).round(6).tolist()
        elif self.gives_coins:
            detail["probabilities"] = output.means.round(6).tolist()
        if not self.gives_coins and coverage is not None and self.calibrations:
            if ends is None or which not in self.calibrations:
                ends, which = (said, said), POINT
            low, high = (end[None] for end in ends)
            low, high = self._widened(low, high, example.values, np.array([len(example)]), which)
            ends = low[0], high[0]
        if not self.gives_coins and ends is not None:
            detail |= {"low": ends[0].tolist(), "high": ends[1].tolist()}
        if self.is_backward:  # the steps before the first, in the order of time
            values = values[::-1]
            detail |= {name: detail[name][::-1] for name in ("low", "high", "probabilities") if name in detail}
        detail["values"] = values.tolist()
        ahead = None if self.is_backward else example.moments_ahead(len(values))
        if ahead is not None:
            detail["times"] = example.written(ahead)
        text = " ".join(",".join(f"{number:.6g}" for number in step) for step in values)
        return Prediction(example.name, text, output.score, example.line, detail)

    def quantiles(self, example: Steps, output: Any) -> dict[float, NDArray[np.float64]]:
        """By levels, (h, d): quantiles of the steps ahead, of the model or of paths that were drawn; {}: neither."""
        last = example.values[-1] if len(example) else np.zeros(len(self.scale.mean))
        unit = self.unit_of(example)
        if output.paths is not None:
            return dict(zip(SHOWN, np.quantile(unit.ahead(output.paths, last), SHOWN, axis=0), strict=True))
        if output.fan is None:
            return {}
        fan = unit.fan(output.fan, last)  # (h, L, d)
        return {level: _level(fan, level) for level in SHOWN}

    def format_of(self, ending: str) -> str | None:
        # A row of frames has one answer, which may stand beside it; a row of a table is only a step.
        return "csv" if ending == "csv" and not self.from_nothing else super().format_of(ending)

    def printed_file(self, file: str | Path | None, answers: Iterable[Prediction], format: str) -> Iterator[str]:
        if format != "csv":
            return super().printed_file(file, answers, format)
        return forecast_csv(answers, self._columns, backward=self.is_backward)

    def counted(self, examples: Sequence[Steps], outputs: Sequence[Any]) -> Counted:
        if self.gives_coins:
            return frame_scores(examples, outputs, settings=self.settings)
        return value_scores(examples, outputs, measures=self.measures, settings=self.settings)

    @property
    def measures(self) -> Measures:
        """How outputs become values in the unit of the data."""
        return Measures(
            self.unit_of,
            self.scale.spread,
            has_sizes=name_of(self.output) not in COUNTS,
            has_density=self.has_density,
            has_quantiles=self.has_quantiles,
            calibrated=self.calibrated_intervals,
            usual_errors=self.facts.errors_of,
        )

    # Views

    def steps(self, example: Steps) -> list[str]:
        """Steps by their numbers; zeros are read before the first where that is predicted too."""
        last = len(example.values)
        numbers = range(last, 0, -1) if self.is_backward else range(1, last + 1)
        return [*(["0"] if self.from_nothing else []), *map(str, numbers)]

    def stacks(self, model: Any) -> dict[str, Stack]:
        return {} if model.recurrent is None else {"recurrent": model.recurrent}

    def viewers(self) -> dict[str, Viewer]:
        gates = {**self.memory_viewer(), "gates": super().viewers()["gates"]._replace(telling=False)}
        forecast = Viewer(
            lambda asked: self.forecast(asked).view(), longest=sys.maxsize, title=FORECAST, of_several=True
        )
        attention = Viewer(self.looked, longest=sys.maxsize, title=LOOKED)
        looked = {"attention": attention} if self.settings.model.ahead == "attention" else {}
        return gates if self.gives_coins else {"forecast": forecast, **looked, **gates}

    def looked(self, asked: Asked) -> View:
        """How much each step of the forecast after the end of a series looked at each step of it. (torch)"""
        from recurra.analysis.looking_back import looking_back
        from recurra.padding import fitted

        series, horizon, model = asked.example, self.settings.decoding.horizon, self.settings.model
        if not len(series):
            raise DataError("the series has no steps that a forecast could look at. Give some.")
        check_ahead(series, self.data, horizon)
        network: Any = asked.model
        [weights] = network.looked(fitted(self.batch([self.encode(series)]), network))
        steps = min(horizon, len(weights))
        moments = series.moments_ahead(steps)
        numbers = [str(len(series) + number) for number in range(1, steps + 1)]
        ahead = numbers if moments is None else series.written(moments)
        shown = "" if steps == horizon else f", the first {steps} steps of the forecast (model.horizon)"
        caption = f"{series.name or 'series'}: attention ({name_of(model.attention)}){shown}"
        return looking_back(weights[:steps], self.moments(series)[-weights.shape[1] :], ahead, caption)

    def forecast(self, asked: Asked) -> forecasts.Forecast:
        """A forecast of the end of a series, which is hidden from the model, beside what came. (torch)"""
        from recurra.analysis import forecasts
        from recurra.models.together import Together

        series, horizon = asked.example, self.settings.decoding.horizon
        now = len(series) - horizon
        if now < 2:
            raise DataError(
                f"the series is too short: it has {len(series)} steps, of which the last {horizon} (the horizon) "
                "are hidden to compare the forecast with them, and at least 2 must be left as input. Give a "
                "longer series, or set a smaller --set decoding.horizon=…."
            )
        coverage = self.settings.decoding.coverage
        # What was calibrated without paths is shown without them.
        has_paths = self.has_quantiles and (coverage is None or not self.calibrations or PATHS in self.calibrations)
        paths = forecasts.PATHS if has_paths and not self.is_direct else 0
        if coverage is not None and not self.calibrations and not has_paths:
            coverage = None
        decoding = dataclasses.replace(self.settings.decoding, paths=paths, coverage=coverage)
        task = self._decoding_by(decoding)
        if isinstance(asked.model, Together):
            tasks = [each._decoding_by(decoding) for each in asked.model.tasks]
            asked = asked._replace(model=Together(tasks, list(asked.model.members)))
        known = series.cut(max(0, now - forecasts.READ), now)
        output = task.output_asked(asked._replace(example=known))
        answer, quantiles = task.answer(known, output), task.quantiles(known, output)
        names = self.settings.data.predicted or [str(number + 1) for number in range(series.values.shape[1])]
        low, high = (np.array(answer.detail[name]) if name in answer.detail else None for name in ("low", "high"))
        file = "" if series.place.startswith(f"{NO_FILE}:") else os.path.basename(series.place)
        steps = f"steps {horizon} to 1" if self.is_backward else f"steps {now + 1} to {len(series)}"
        said = np.array(answer.detail["values"])
        if self.is_backward:  # it was read that way, and is drawn so
            said, low, high = said[::-1], *(None if each is None else each[::-1] for each in (low, high))
        inner = {share: (quantiles[a], quantiles[b]) for share, (a, b) in forecasts.INNER.items() if quantiles}
        return forecasts.Forecast(
            ", ".join(filter(None, [series.name or file, steps])),
            list(names),
            series.values[max(0, now - forecasts.BEFORE) : now],
            said,
            series.values[now:],
            low,
            high,
            "step back" if self.is_backward else "step ahead",
            0.9 if coverage is None else coverage,
            inner,
        )

    def _decoding_by(self, decoding: ForecastingDecoding) -> Self:
        return self.with_settings(dataclasses.replace(self.settings, decoding=decoding), Path())

    def anatomy(self, model: Any) -> Anatomy:
        from recurra.analysis.anatomy import UnrolledLevel

        found = super().anatomy(model)._replace(answers="ahead")
        return found if self.stacks(model) else found._replace(reader=[UnrolledLevel(self.settings.model.encoder)])

    def portions(self, examples: Sequence[Steps], count: int) -> list[tuple[Steps, int]]:
        """Series whose ends are forecast; of few series, also of earlier parts."""
        horizon = self.settings.decoding.horizon
        ends = [
            (each, len(each) - back * horizon)
            for back in range(count)
            for each in examples
            if len(each) - (back + 1) * horizon >= 2
        ][:count]
        return [(each.cut(0, end), end) for each, end in ends]

    def answer_kind(self) -> AnswerKind:
        return "text" if self.is_backward else "series"  # which the page draws after the input

    def purpose(self) -> Purpose:
        what = "frames of a sequence" if self.from_nothing else "steps of a series"
        kind = extension(self.settings.data.files("train")[0])
        which = "the earlier" if self.is_backward else "the next"
        return SERIES._replace(does=f"predicts {which} {what}", asked=f"input.{kind}")

    def _beside_in_words(self) -> str:
        """What is read beside the values."""
        data = self.settings.data
        names = [*data.covariates, *data.calendar, *(["time elapsed"] if data.elapsed else [])]
        if not names:
            return ""
        return f" with {len(names)} covariates" if len(names) > NAMED else f" with {', '.join(names)}"

    def described(self) -> str:
        model = self.settings.model
        what = "frames of" if self.from_nothing else "series of"
        size = len(self.scale.mean)
        under = f", linear layer {model.embedding}" if model.embedding else ""
        values = f"{what} {size} value{'s' if size > 1 else ''}{self._beside_in_words()}"
        cell = cell_in_words(model.cell, direction=model.direction)
        stack = layers_in_words(cell, model.hidden, model.layers, model.mix)
        if model.encoder == "transformer":
            name = f"{'backward ' if self.is_backward else ''}Transformer"
            stack = layers_in_words(name, model.widths[0], len(model.widths))
        if model.ahead == "attention":
            own = model.decoder
            decoder = layers_in_words(cell_in_words(own.cell or model.cell), own.hidden, own.layers)
            stack += f", {decoder} decoder with attention over {model.lags} steps"
        return f"{values}{under}, {stack}, {output_in_words(self.output)} output"


def _level(fan: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """(h, d): a quantile by those around it, (h, L, d)."""
    place = np.interp(level, LEVELS, np.arange(len(LEVELS)))
    low, part = int(place), place % 1
    high = min(low + 1, len(LEVELS) - 1)
    return (1 - part) * fan[:, low] + part * fan[:, high]


def in_order_of(settings: ForecastingSettings) -> Callable[[Steps], Steps]:
    """What brings a sequence into the order in which it is read, and back."""
    return Steps.reversed if settings.model.direction == "backward" else lambda steps: steps


def check_not_negative(values: NDArray[np.float64], place: str) -> None:
    """Refuse a value that has no logarithm; 0 is read as a small value (`floor_of`)."""
    if (values < 0).any():
        raise DataError(
            f"{place}: found {values[values < 0][0]:g}, but the model takes the logarithm of values (data.log), which "
            "must not be negative. Train with data.log = false."
        )


def unfit(values: NDArray[np.float64], output: str | None) -> float | None:
    """The first value that an output is not for, if there is one."""
    if output not in FIT_FOR:
        return None
    values = values[~np.isnan(values)]
    is_odd = (values < 0) | (values != np.round(values)) if output in COUNTS else values <= 0
    return float(values[is_odd][0]) if is_odd.any() else None


def reads_gaps_in(settings: ForecastingSettings) -> bool:
    """Whether the cell of these settings reads gaps. (torch)"""
    from recurra.cells import reads_gaps

    return settings.model.encoder == "rnn" and reads_gaps(settings.model.cell)


def moments_of(steps: Steps) -> NDArray[np.float64] | None:
    """(T,): the times of steps as numbers; None where they are only counted."""
    if steps.times is None:
        return steps.numbers
    return (steps.times - steps.times[:1]) / np.timedelta64(1, "s")
